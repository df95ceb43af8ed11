// The programs that nvcc runs, in two chains beside each other.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_NVCC_STEPS_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_NVCC_STEPS_H_

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace warpsmith {

// A shell script of the steps that `nvcc --dryrun --keep` prints for one file and one architecture: those that make
// machine code run beside those that take the host's code apart, then the host's code is compiled. The messages are
// those of nvcc: of a program whose host's half is refused it tells nothing of the other. UNIMPLEMENTED for other steps
// than these.
absl::StatusOr<std::string> ScriptOfSteps(std::string_view dry_run);

// A command that does what `command` does, nvcc with --keep and file names in /tmp, where it is run, in two thirds of
// the time where a second core is idle. `command` itself where its steps are not known: of several architectures, or
// another nvcc, or where it is `cancelled`. Asks nvcc, which takes some 10 to 70 ms and reads no source.
std::vector<std::string> InTwoChains(const std::vector<std::string>& command,
                                     const std::atomic<bool>& cancelled);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_NVCC_STEPS_H_
