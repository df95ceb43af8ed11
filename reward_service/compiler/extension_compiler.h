// Builds the C++ and CUDA extensions of KernelBench answers, on the first tier of headers that takes them.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_EXTENSION_COMPILER_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_EXTENSION_COMPILER_H_

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "reward_service/compiler/cuda_toolchain.h"
#include "reward_service/compiler/extension_source.h"
#include "reward_service/compiler/header_tier.h"
#include "reward_service/compiler/precompiled_headers.h"
#include "reward_service/compiler/refusal.h"
#include "reward_service/compiler/sandboxed_compilation.h"
#include "reward_service/compiler/toolchain.h"

namespace warpsmith {

// Of an inline program's CUDA half.
struct CudaTarget {
  CudaToolchain toolchain;
  std::vector<std::string> architectures;
};

struct ExtensionCompilerOptions {
  HeaderPlaces places;
  std::filesystem::path
      work_directory;  // for precompiled headers: 25 MB a facade, 250 MB for torch/extension.h
  // Of one call on all tiers together.
  CompileLimits limits = {.cpu_seconds_max = 120,
                          .wall_seconds_max = 180,
                          .memory_bytes_max = int64_t{6} << 30,
                          .library_bytes_max = int64_t{64} << 20};
  std::optional<CudaTarget> cuda;  // none: CUDA sources are refused
};

// Thread-safe. A tier's headers are precompiled beside the first compilations on it, which do without.
class ExtensionCompiler {
 public:
  ExtensionCompiler(Toolchain toolchain, ExtensionCompilerOptions options);

  // As Compiler::Compile, for one load_inline call. Arguments that cannot be compiled are a refused program.
  // A program that no tier takes has the diagnostics of the last one that was tried.
  absl::StatusOr<CompiledProgram> Compile(const ExtensionArguments& arguments,
                                          const std::atomic<bool>& cancelled);

  // What the cache calls these arguments.
  std::string Key(const ExtensionArguments& arguments) const;

 private:
  // A call after its arguments were checked.
  struct Checked {
    std::string name;
    ExtensionSources sources;
    std::vector<std::string> cflags;
    std::vector<std::string> ldflags;
    std::vector<std::string> cuda_cflags;
    bool with_cuda = false;
    absl::Time deadline;
  };

  absl::StatusOr<Checked> Check(const ExtensionArguments& arguments) const;
  absl::StatusOr<CompiledProgram> CompileOn(const HeaderTier& tier, const Checked& call,
                                            const std::atomic<bool>& cancelled);
  // Both halves at once on the same headers, which say what a tensor is, then their link.
  absl::StatusOr<CompiledProgram> CompileHalves(const HeaderTier& tier, const Checked& call,
                                                const std::atomic<bool>& cancelled);
  // With g++ up to the source, and with nvcc; both see the same files and share the call's time.
  Compilation CppCompilation(const HeaderTier& tier, const Checked& call);
  Compilation CudaCompilation(const HeaderTier& tier, const Checked& call) const;
  Compilation EmptyCompilation(const Checked& call) const;
  std::vector<std::string> LinkFlags(const HeaderTier& tier, const Checked& call) const;

  const Toolchain toolchain_;
  const ExtensionCompilerOptions options_;
  const std::vector<HeaderTier> tiers_;
  std::vector<std::unique_ptr<const HeaderNames>> names_;  // by tier; null where they are not known
  PrecompiledHeaders headers_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_EXTENSION_COMPILER_H_
