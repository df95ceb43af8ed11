// What `warpsmith` itself reads of a run's configuration.
#ifndef WARPSMITH_CLI_RUN_CONFIG_H_
#define WARPSMITH_CLI_RUN_CONFIG_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace warpsmith {

struct RunConfig {
  std::filesystem::path run_directory;  // run.directory, or runs/<run.name>
  int num_trainers = 1;
};

// Reads `path` with `assignments` ("section.key=value") on top. Sections of the processes are theirs to
// check, except that each must be known by name. INVALID_ARGUMENT with file and line; NOT_FOUND.
absl::StatusOr<RunConfig> ReadRunConfig(const std::filesystem::path& path,
                                        const std::vector<std::string>& assignments);

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_RUN_CONFIG_H_
