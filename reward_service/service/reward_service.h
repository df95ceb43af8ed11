// Builds the service from its options and runs it.
#ifndef WARPSMITH_REWARD_SERVICE_SERVICE_REWARD_SERVICE_H_
#define WARPSMITH_REWARD_SERVICE_SERVICE_REWARD_SERVICE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace warpsmith {

struct RewardServiceFlags {
  std::string config;   // path of a run file; empty: defaults
  std::string address;  // empty: the run file's
  std::vector<std::string> overrides;
  std::string log_level = "info";
};

// Serves until SIGTERM or SIGINT, then drains. Prints "listening on ADDRESS" to standard output once requests
// are served. FAILED_PRECONDITION, with the fix, where this machine cannot compile or confine.
absl::Status RunRewardService(const RewardServiceFlags& flags);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVICE_REWARD_SERVICE_H_
