// Which of the waiting candidates goes next: those of one task near each other, none left behind.
#ifndef WARPSMITH_REWARD_SERVICE_SERVICE_LANE_POLICY_H_
#define WARPSMITH_REWARD_SERVICE_SERVICE_LANE_POLICY_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace warpsmith {

struct WaitingWork {
  std::string_view task_key;
  absl::Duration waited;
};

// What a lane, or a compile worker, did last.
struct RecentWork {
  std::string task_key;
  // Candidates of that task in a row.
  int run_length = 0;
};

struct LanePolicyOptions {
  // A task's oracle and inputs stay warm while its candidates follow each other, but others want their turn
  // too.
  int run_length_max = 32;
  absl::Duration wait_max = absl::Seconds(10);
};

// Index of the work to do next; `waiting` is in order of arrival and not empty. The first that waited for
// wait_max goes before all; then the first of the recent task while its run is short; then the first of
// another task.
size_t PickNext(const std::vector<WaitingWork>& waiting, const RecentWork& recent,
                const LanePolicyOptions& options);

// What `recent` becomes after work on `task_key`.
RecentWork AfterWork(const RecentWork& recent, std::string_view task_key);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVICE_LANE_POLICY_H_
