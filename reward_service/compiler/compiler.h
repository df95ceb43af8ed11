// Builds native candidates in a sandbox.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_COMPILER_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_COMPILER_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "reward_service/compiler/prelude.h"
#include "reward_service/compiler/toolchain.h"

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
  bool cached = false;

  bool succeeded() const { return library != nullptr; }
};

// Thread-safe: any number of compilations at once.
class Compiler {
 public:
  // Probes the compiler and builds the preludes under `work_directory`, which is made if it is missing.
  static absl::StatusOr<std::unique_ptr<Compiler>> Create(const std::filesystem::path& work_directory,
                                                          CompileLimits limits);

  // Compiles `source` (C++17, D7's entry point) to a shared library. A compilation that exceeds its limits is
  // a refused program. CANCELLED soon after `cancelled` becomes true; INTERNAL or RESOURCE_EXHAUSTED when
  // this machine fails.
  absl::StatusOr<CompiledProgram> Compile(std::string_view source, const std::atomic<bool>& cancelled) const;

  const Toolchain& toolchain() const { return toolchain_; }

 private:
  Compiler(Toolchain toolchain, std::vector<Prelude> preludes, CompileLimits limits)
      : toolchain_(std::move(toolchain)), preludes_(std::move(preludes)), limits_(limits) {}

  std::vector<std::string> Arguments(std::string_view source) const;

  const Toolchain toolchain_;
  const std::vector<Prelude> preludes_;
  const CompileLimits limits_;
};

// A memfd with `content`, at offset 0 and sealed against any change.
absl::StatusOr<UniqueFd> SealedMemfd(const char* name, std::string_view content);

// All bytes of a memfd. INVALID_ARGUMENT when it holds more than `bytes_max`.
absl::StatusOr<std::string> ReadMemfd(int fd, int64_t bytes_max);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_COMPILER_H_
