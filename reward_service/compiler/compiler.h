// Builds native candidates in a sandbox.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_COMPILER_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_COMPILER_H_

#include <atomic>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reward_service/compiler/prelude.h"
#include "reward_service/compiler/sandboxed_compilation.h"
#include "reward_service/compiler/toolchain.h"

namespace warpsmith {

// Thread-safe: any number of compilations at once.
class Compiler {
 public:
  // Probes the compiler and builds the preludes under `work_directory`, which is made if it is missing. A
  // disk that does not take them is said once, and costs time with each program, no verdict.
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

  const Toolchain toolchain_;
  const std::vector<Prelude> preludes_;
  const CompileLimits limits_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_COMPILER_H_
