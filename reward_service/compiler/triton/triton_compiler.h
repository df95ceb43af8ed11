// Builds the Triton kernels of KernelBench answers in a sandbox: Triton's compiler with its ptxas, and nothing of the
// program's own Python.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_TRITON_TRITON_COMPILER_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_TRITON_TRITON_COMPILER_H_

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reward_service/compiler/sandboxed_compilation.h"

namespace warpsmith {

struct TritonToolchain {
  std::filesystem::path python;
  std::string version;  // "3.6.0"
  // All that the compiler reads beside the system: the interpreter's folders and Triton's.
  std::vector<std::filesystem::path> read_only_paths;
};

// Asks `python`, which is trusted. NOT_FOUND, with the package to install, where it has no Triton.
absl::StatusOr<TritonToolchain> ProbeTriton(const std::filesystem::path& python);

struct TritonCompilerOptions {
  std::filesystem::path script;  // compile_triton.py
  // Of all kernels of a program together.
  CompileLimits limits = {.cpu_seconds_max = 240,
                          .wall_seconds_max = 120,
                          .memory_bytes_max = int64_t{8} << 30,
                          .library_bytes_max = int64_t{64} << 20};
};

// Thread-safe: any number of compilations at once.
class TritonCompiler {
 public:
  // NOT_FOUND without its script.
  static absl::StatusOr<std::unique_ptr<TritonCompiler>> Create(TritonToolchain toolchain,
                                                                TritonCompilerOptions options);

  // Compiles `kernels`, a list as jail/triton_kernels.py writes it: the library of what comes out is a file for
  // that module, with the machine code of each kernel beside it. As Compiler::Compile otherwise.
  absl::StatusOr<CompiledProgram> Compile(std::string_view kernels, const std::atomic<bool>& cancelled) const;

  // What the cache calls these kernels.
  std::string Key(std::string_view kernels) const;

  const std::string& version() const { return toolchain_.version; }

 private:
  TritonCompiler(TritonToolchain toolchain, TritonCompilerOptions options, std::string fingerprint)
      : toolchain_(std::move(toolchain)),
        options_(std::move(options)),
        fingerprint_(std::move(fingerprint)) {}

  const TritonToolchain toolchain_;
  const TritonCompilerOptions options_;
  const std::string fingerprint_;
};

// The machine code in a file of compile_triton.py: for each kernel an architecture in 16 bytes, filled up with zeros, a
// length in 8 bytes (little-endian), and so many bytes. What comes after something that is not of this form, or is
// longer than a cubin may be, is left out: a program has influence on all of it.
std::vector<Cubin> ParseCubins(std::string_view bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_TRITON_TRITON_COMPILER_H_
