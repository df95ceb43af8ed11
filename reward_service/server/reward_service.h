// Builds the service from its options and runs it.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_REWARD_SERVICE_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_REWARD_SERVICE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpsmith {

struct RewardServiceFlags {
  std::string config;   // path of a run file; empty: defaults
  std::string address;  // empty: the run file's
  std::vector<std::string> overrides;
  std::string log_level = "info";
};

// The section `reward_service` as YAML with every default. INVALID_ARGUMENT with every fault of the section, a
// line each, of the files that it names, and of the formula that the trainer will ask for.
absl::StatusOr<std::string> CheckRewardService(const RewardServiceFlags& flags);

// Every key of that section, as ConfigFile::Reference() writes them; a tenant's under the name NAME.
std::string RewardServiceReference();

// Serves until SIGTERM or SIGINT, then drains. Prints "listening on ADDRESS" to standard output once requests
// are served. FAILED_PRECONDITION, with the fix, where this machine cannot compile or confine.
absl::Status RunRewardService(const RewardServiceFlags& flags);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_REWARD_SERVICE_H_
