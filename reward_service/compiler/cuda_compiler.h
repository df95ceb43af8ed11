// Builds native CUDA candidates in a sandbox.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_CUDA_COMPILER_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_CUDA_COMPILER_H_

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reward_service/compiler/cuda_toolchain.h"
#include "reward_service/compiler/sandboxed_compilation.h"

namespace warpsmith {

struct HalvesCommand;

// Of what compiles a program in halves; the rest is of the toolchain.
struct HalvesPlaces {
  std::filesystem::path program;           // warpsmith-nvrtc
  std::filesystem::path header_directory;  // with native_host.h and native_device.h
};

struct CudaCompilerOptions {
  // With libraries that have nothing but the names of CUDA's runtime, cuBLAS and cuDNN: the jail has the real ones.
  std::filesystem::path stub_directory;
  // With headers that stand before those of cuBLAS and cuDNN where a program may not use them, and say so.
  std::filesystem::path withheld_directory;
  // What programs are compiled with in halves, where they can be; absent: by nvcc alone.
  std::optional<HalvesPlaces> halves;
  CompileLimits limits = {.cpu_seconds_max = 20, .memory_bytes_max = int64_t{4} << 30};
};

// What a program may use beside CUDA's runtime and headers.
enum class LinkedLibraries {
  kNone,
  kBlas,  // cuBLAS, cuBLASLt and cuDNN
};

// GPU architectures that one library is compiled for at most.
inline constexpr size_t kArchitecturesMax = kFilesMax - 1;

// OK for one to kArchitecturesMax names like "sm_90" and "sm_90a", else INVALID_ARGUMENT.
absl::Status CheckArchitectures(const std::vector<std::string>& architectures);

// nvcc's flags that make machine code, and nothing else, for each architecture.
std::vector<std::string> ArchitectureFlags(const std::vector<std::string>& architectures);

// Where nvcc keeps what ptxas made of "/tmp/STEM.cu", in the order of the architectures.
std::vector<std::string> CubinFiles(const std::string& stem, const std::vector<std::string>& architectures);

// What was read of `outputs`, from number `first` on, of each architecture. Errors are those of the memfds.
absl::StatusOr<std::vector<Cubin>> ReadCubins(const std::vector<UniqueFd>& outputs, size_t first,
                                              const std::vector<std::string>& architectures);

// Thread-safe: any number of compilations at once.
class CudaCompiler {
 public:
  CudaCompiler(CudaToolchain toolchain, CudaCompilerOptions options);

  // As Compiler::Compile, for `source` in CUDA C++17, with the machine code that ptxas made beside the library.
  // Without `libraries` a program that includes their headers is refused, and told why. INVALID_ARGUMENT for
  // architectures that CheckArchitectures refuses; FAILED_PRECONDITION where the headers of `libraries` are not here.
  absl::StatusOr<CompiledProgram> Compile(std::string_view source,
                                          const std::vector<std::string>& architectures,
                                          const std::atomic<bool>& cancelled,
                                          LinkedLibraries libraries = LinkedLibraries::kNone) const;

  // What the cache calls this source for these architectures: by all that its machine code depends on.
  std::string Key(std::string_view source, const std::vector<std::string>& architectures,
                  LinkedLibraries libraries = LinkedLibraries::kNone) const;

  const CudaToolchain& toolchain() const { return toolchain_; }

 private:
  // The halves of a program that NVRTC and the host's compiler may take; none of one that is nvcc's.
  std::optional<HalvesCommand> InHalves(std::string_view source,
                                        const std::vector<std::string>& architectures,
                                        LinkedLibraries libraries) const;
  // No outputs where they do not take it, broken or only unusual.
  absl::StatusOr<CompilationResult> RunInHalves(const HalvesCommand& halves,
                                                const std::atomic<bool>& cancelled) const;
  // In halves, or else, and where these have refused it or could not be compiled, by nvcc.
  absl::StatusOr<CompilationResult> Run(std::string_view source,
                                        const std::vector<std::string>& architectures,
                                        const std::atomic<bool>& cancelled, LinkedLibraries libraries,
                                        std::string* compiler) const;
  std::vector<std::string> Command(std::string_view source, const std::vector<std::string>& architectures,
                                   LinkedLibraries libraries) const;

  const CudaToolchain toolchain_;
  const CudaCompilerOptions options_;
  const std::string halves_digest_;  // of the files that halves are compiled with
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_CUDA_COMPILER_H_
