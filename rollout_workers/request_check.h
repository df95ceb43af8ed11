// What a GenerateGroupsRequest has to be before anything is done for it.
#ifndef WARPSMITH_ROLLOUT_WORKERS_REQUEST_CHECK_H_
#define WARPSMITH_ROLLOUT_WORKERS_REQUEST_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "proto/request_limits.h"
#include "warpsmith/v1/rollout_service.pb.h"

namespace warpsmith {

struct GenerateLimits {
  int tasks_max = 4096;
  int num_samples_max = kGroupSamplesMax;
};

// INVALID_ARGUMENT naming field, value and range: an id over 128 bytes or none, no task or too many, a task
// without an id or with that of another (their samples would be equal), num_samples or sampling parameters
// out of range. A task that is at fault itself does not fail its request: its group comes back as
// INVALID_TASK.
absl::Status CheckRequest(const v1::GenerateGroupsRequest& request, const GenerateLimits& limits);

// SHA-256 over all that determines the answers and grades to one of its tasks, the task aside: a request
// without its id and its tasks.
std::string SettingsDigest(const v1::GenerateGroupsRequest& request);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_REQUEST_CHECK_H_
