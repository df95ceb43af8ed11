// One run of a compiler in a sandbox: source in by a descriptor, library and messages out.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_SANDBOXED_COMPILATION_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_SANDBOXED_COMPILATION_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

struct CompileLimits {
  int cpu_seconds_max = 10;      // of one process of the compiler
  double wall_seconds_max = 20;  // of the whole compilation
  int64_t memory_bytes_max = int64_t{2} << 30;
  int64_t library_bytes_max = int64_t{16} << 20;  // also of diagnostics and of temporary files
};

// A compilation's result. A refused program is a result, not an error.
struct CompiledProgram {
  // The shared library, a sealed memfd to be read from offset 0; null when the program was refused.
  std::shared_ptr<const UniqueFd> library;
  int64_t library_bytes = 0;
  // Trimmed and escaped; see diagnostics.h.
  std::string diagnostics;
  // The headers behind torch/extension.h, as HeaderTier::name; empty for native programs.
  std::string headers;
  bool cached = false;

  bool succeeded() const { return library != nullptr; }
};

struct Compilation {
  // Compiler and flags, without input and output: the source is standard input.
  std::vector<std::string> command;
  // What goes after the source, e.g. libraries.
  std::vector<std::string> link_flags;
  // What is read inside, at the same path, of the system (empty: all of it) and beside it. Whatever can be read,
  // a program can take into its library, by `.incbin`, `.include` or `#include`.
  std::vector<std::filesystem::path> system_paths;
  std::vector<std::filesystem::path> read_only_paths;
  CompileLimits limits;
};

// Compiles C++ `source` to a shared library. A compilation that exceeds its limits is a refused program.
// CANCELLED soon after `cancelled` becomes true; INTERNAL or RESOURCE_EXHAUSTED when this machine fails.
// Thread-safe.
absl::StatusOr<CompiledProgram> RunCompilation(const Compilation& compilation, std::string_view source,
                                               const std::atomic<bool>& cancelled);

// A refused program with one line of diagnostics.
CompiledProgram RefusedProgram(std::string diagnostics);

// A memfd with `content`, at offset 0 and sealed against any change.
absl::StatusOr<UniqueFd> SealedMemfd(const char* name, std::string_view content);

// All bytes of a memfd. INVALID_ARGUMENT when it holds more than `bytes_max`.
absl::StatusOr<std::string> ReadMemfd(int fd, int64_t bytes_max);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_SANDBOXED_COMPILATION_H_
