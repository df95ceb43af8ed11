// One run of a compiler in a sandbox: source in by a descriptor, what was made and messages out.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_SANDBOXED_COMPILATION_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_SANDBOXED_COMPILATION_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

// The machine code of one GPU architecture.
struct Cubin {
  std::string architecture;  // "sm_90a"
  std::string bytes;         // an ELF file as ptxas wrote it; a program has influence on all of it
};

// A program as compiled. A refused one is a result, not an error.
struct CompiledProgram {
  // The shared library, a sealed memfd to be read from offset 0; null when the program was refused.
  std::shared_ptr<const UniqueFd> library;
  int64_t library_bytes = 0;
  // Trimmed and escaped; see diagnostics.h.
  std::string diagnostics;
  // "nvcc 13.0.88", for people; empty: the host compiler alone.
  std::string compiler;
  // The headers behind torch/extension.h, as HeaderTier::name; empty for native programs.
  std::string headers;
  std::vector<Cubin> cubins;  // in the order of the architectures; empty for programs without device code
  bool cached = false;

  bool succeeded() const { return library != nullptr; }
};

// Where the library lies inside, unless a compilation says otherwise.
inline constexpr char kLibraryFile[] = "/tmp/candidate.so";

struct Compilation {
  // Compiler and all flags, those of input and output among them. Paths are those inside.
  std::vector<std::string> command;
  // Where the source is put, in /tmp; empty: it is standard input.
  std::string source_file;
  // Files that are put there besides: {inside, descriptor}, each read from its begin. With the outputs at most
  // kFilesMax.
  std::vector<std::pair<std::string, int>> input_files;
  // What comes out, in this order: all must be made. Names are ours, never a candidate's.
  std::vector<std::string> output_files = {kLibraryFile};
  // What is read inside, at the same path, of the system (empty: all of it) and beside it. Whatever can be read,
  // a program can take into its library, by `.incbin`, `.include` or `#include`.
  std::vector<std::filesystem::path> system_paths;
  std::vector<std::filesystem::path> read_only_paths;
  CompileLimits limits;
};

// What the shell can name with one digit, beside the standard ones.
inline constexpr size_t kFilesMax = 7;

// What a compilation made. One that was refused made nothing.
struct CompilationResult {
  std::vector<UniqueFd> outputs;  // sealed memfds
  std::string diagnostics;        // trimmed and escaped

  bool succeeded() const { return !outputs.empty(); }
};

// Compiles `source`. A compilation that exceeds its limits is refused. CANCELLED soon after `cancelled` becomes
// true; INTERNAL or RESOURCE_EXHAUSTED when this machine fails. Thread-safe.
absl::StatusOr<CompilationResult> RunCompilation(const Compilation& compilation, std::string_view source,
                                                 const std::atomic<bool>& cancelled);

// The program of a result whose first output is its library.
CompiledProgram ProgramOf(CompilationResult result);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_SANDBOXED_COMPILATION_H_
