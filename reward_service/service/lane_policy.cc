#include "reward_service/service/lane_policy.h"

#include "core/base/check.h"

namespace warpsmith {

size_t PickNext(const std::vector<WaitingWork>& waiting, const RecentWork& recent,
                const LanePolicyOptions& options) {
  WS_CHECK(!waiting.empty());
  if (waiting.front().waited >= options.wait_max) return 0;
  const bool want_same = recent.run_length > 0 && recent.run_length < options.run_length_max;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if ((waiting[i].task_key == recent.task_key) == want_same) return i;
  }
  return 0;
}

RecentWork AfterWork(const RecentWork& recent, std::string_view task_key) {
  const bool same = recent.run_length > 0 && recent.task_key == task_key;
  return {std::string(task_key), same ? recent.run_length + 1 : 1};
}

}  // namespace warpsmith
