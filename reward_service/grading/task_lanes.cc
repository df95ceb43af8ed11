#include "reward_service/grading/task_lanes.h"

namespace warpsmith {
namespace {

// A task that nobody works on makes room for others, which its lane does not tell.
constexpr absl::Duration kLately = absl::Seconds(10);

bool Has(const JudgeStage& lane, absl::Time used_at, absl::Time now) {
  return now - used_at <= kLately && !lane.is_lost() && !lane.is_lent();
}

}  // namespace

void TaskLanes::Use(const std::string& task_key, const JudgeStage* lane, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  for (auto task = used_.begin(); task != used_.end();) {
    UsedAt& lanes = task->second;
    for (auto it = lanes.begin(); it != lanes.end();)
      it = now - it->second > kLately ? lanes.erase(it) : ++it;
    task = lanes.empty() ? used_.erase(task) : ++task;
  }
  used_[task_key][lane] = now;
}

const JudgeStage* TaskLanes::Of(const std::string& task_key, v1::Device device, absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto task = used_.find(task_key);
  if (task == used_.end()) return nullptr;
  for (const auto& [lane, used_at] : task->second)
    if (lane->device() == device && Has(*lane, used_at, now)) return lane;
  return nullptr;
}

bool TaskLanes::IsElsewhere(const std::string& task_key, const JudgeStage* lane, absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto task = used_.find(task_key);
  if (task == used_.end()) return false;
  bool others_have = false;
  for (const auto& [other, used_at] : task->second) {
    if (other->device() != lane->device() || !Has(*other, used_at, now)) continue;
    if (other == lane) return false;
    others_have = true;
  }
  return others_have;
}

}  // namespace warpsmith
