// Builds the C++ extensions of KernelBench answers, with the real Torch headers.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_EXTENSION_COMPILER_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_EXTENSION_COMPILER_H_

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "reward_service/compiler/extension_source.h"
#include "reward_service/compiler/prelude.h"
#include "reward_service/compiler/sandboxed_compilation.h"

namespace warpsmith {

struct ExtensionCompilerOptions {
  std::filesystem::path torch_dir;       // of the Python package
  std::filesystem::path python_include;  // with Python.h
  std::filesystem::path work_directory;  // for the precompiled torch/extension.h, some 250 MB
  CompileLimits limits = {.cpu_seconds_max = 120,
                          .wall_seconds_max = 180,
                          .memory_bytes_max = int64_t{6} << 30,
                          .library_bytes_max = int64_t{64} << 20};
};

// Thread-safe. The first compilation also precompiles torch/extension.h, which takes as long as an extension
// without it, and later ones a fraction of that.
class ExtensionCompiler {
 public:
  ExtensionCompiler(Toolchain toolchain, ExtensionCompilerOptions options)
      : toolchain_(std::move(toolchain)), options_(std::move(options)) {}

  // As Compiler::Compile, for one load_inline call. Arguments that cannot be compiled are a refused program.
  absl::StatusOr<CompiledProgram> Compile(const ExtensionArguments& arguments,
                                          const std::atomic<bool>& cancelled);

  // What the cache calls these arguments.
  std::string Key(const ExtensionArguments& arguments) const;

 private:
  std::vector<std::string> Flags() const;
  // `-include` of the precompiled header; nothing where it could not be made, for then the source includes it
  // itself.
  std::vector<std::string> Precompiled() ABSL_LOCKS_EXCLUDED(mutex_);

  const Toolchain toolchain_;
  const ExtensionCompilerOptions options_;
  absl::Mutex mutex_;
  bool tried_ ABSL_GUARDED_BY(mutex_) = false;
  std::filesystem::path header_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_EXTENSION_COMPILER_H_
