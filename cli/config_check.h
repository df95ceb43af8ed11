// `warpsmith config`: every program checks its own sections of a run's configuration; nothing is started.
#ifndef WARPSMITH_CLI_CONFIG_CHECK_H_
#define WARPSMITH_CLI_CONFIG_CHECK_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/stop_signals.h"

namespace warpsmith {

struct ConfigCheck {
  std::filesystem::path binaries;  // folder of our programs
  std::filesystem::path config;
  std::vector<std::string> assignments;  // "section.key=value", on top of the file
};

// The whole configuration as YAML, all sections with every default. INVALID_ARGUMENT with every fault of all
// sections, a line each, those first that are found first in the order trainer, rollout worker, reward
// service; INTERNAL when a program cannot say; CANCELLED on a signal.
absl::StatusOr<std::string> ResolveConfig(const ConfigCheck& check, StopSignals* signals);

// Prints that YAML to standard output, or the faults to standard error. 0 or 1.
int RunConfigCheck(const ConfigCheck& check, StopSignals* signals);

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_CONFIG_CHECK_H_
