#include "reward_service/grading/task_lanes.h"

namespace warpsmith {
namespace {

// A lane whose GPU is lent away takes nothing, so its tasks are others' after a while.
constexpr absl::Duration kLately = absl::Seconds(10);

}  // namespace

void TaskLanes::Use(const std::string& task_key, const JudgeStage* lane, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  UsedTasks& tasks = used_[lane->device()];
  for (auto it = tasks.begin(); it != tasks.end();)
    it = now - it->second.at > kLately ? tasks.erase(it) : ++it;
  Used& used = tasks[task_key];
  if (used.lane != nullptr && used.lane != lane && !used.lane->is_lost()) return;
  used = {lane, now};
}

const JudgeStage* TaskLanes::Of(const std::string& task_key, v1::Device device, absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto tasks = used_.find(device);
  if (tasks == used_.end()) return nullptr;
  const auto found = tasks->second.find(task_key);
  if (found == tasks->second.end() || now - found->second.at > kLately || found->second.lane->is_lost())
    return nullptr;
  return found->second.lane;
}

}  // namespace warpsmith
