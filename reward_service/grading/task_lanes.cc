#include "reward_service/grading/task_lanes.h"

#include <algorithm>

namespace warpsmith {
namespace {

// A task that nobody works on makes room for others, which its lane does not tell. Most judgements take less time, and
// most candidates wait less between their recording and their judgement.
constexpr absl::Duration kLately = absl::Seconds(60);
// After which no candidate is left to another lane any more.
constexpr absl::Duration kLeftMax = absl::Seconds(10);

}  // namespace

bool TaskLanes::Has(const JudgeStage& lane, const LaneUse& use, absl::Time now) {
  return now - use.last <= kLately && !lane.is_lost() && !lane.is_lent();
}

TaskLanes::LaneUse& TaskLanes::Touch(const std::string& task_key, const JudgeStage* lane, absl::Time now) {
  for (auto task = uses_.begin(); task != uses_.end();) {
    Uses& lanes = task->second;
    for (auto it = lanes.begin(); it != lanes.end();)
      it = now - it->second.last > kLately ? lanes.erase(it) : ++it;
    task = lanes.empty() ? uses_.erase(task) : ++task;
  }
  LaneUse& use = uses_[task_key][lane];
  use.last = now;
  return use;
}

void TaskLanes::Use(const std::string& task_key, const JudgeStage* lane, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  Touch(task_key, lane, now);
}

void TaskLanes::BeginJudgement(const std::string& task_key, const JudgeStage* lane, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  LaneUse& use = Touch(task_key, lane, now);
  if (!use.first_begun) use.first_begun = now;
}

void TaskLanes::EndJudgement(const std::string& task_key, const JudgeStage* lane, bool is_complete,
                             absl::Time now) {
  absl::MutexLock lock(&mutex_);
  LaneUse& use = Touch(task_key, lane, now);
  // One that took longer than kLately began before what is known of the task.
  if (!use.first_begun) {
    use.first_begun = now;
  } else if (is_complete && !use.first_took) {
    use.first_took = now - *use.first_begun;
  }
}

const JudgeStage* TaskLanes::Of(const std::string& task_key, v1::Device device, absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto task = uses_.find(task_key);
  if (task == uses_.end()) return nullptr;
  for (const auto& [lane, use] : task->second)
    if (lane->device() == device && Has(*lane, use, now)) return lane;
  return nullptr;
}

TaskPlace TaskLanes::PlaceOf(const std::string& task_key, const JudgeStage* lane, absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto task = uses_.find(task_key);
  if (task == uses_.end()) return TaskPlace::kNowhere;
  TaskPlace place = TaskPlace::kNowhere;
  for (const auto& [other, use] : task->second) {
    if (other->device() != lane->device() || !Has(*other, use, now)) continue;
    if (other == lane) return use.first_begun ? TaskPlace::kHere : TaskPlace::kNowhere;
    place = TaskPlace::kElsewhere;
  }
  return place;
}

absl::Duration TaskLanes::FirstResultTakes(v1::Device device, absl::Time now) const {
  absl::Duration sum;
  int num = 0;
  for (const auto& [task_key, lanes] : uses_) {
    for (const auto& [lane, use] : lanes) {
      if (lane->device() != device || !Has(*lane, use, now) || !use.first_took) continue;
      sum += *use.first_took;
      ++num;
    }
  }
  return num == 0 ? absl::InfiniteDuration() : sum / num;
}

// A lane with nothing in hand would need that long to a result of its own, and other work may come meanwhile. Once a
// candidate has waited so long, the other lane is behind. Lanes of cores share no driver, and leave nothing.
absl::Duration TaskLanes::LeftMax(const JudgeStage& lane, bool has_work_in_hand, absl::Time now) const {
  if (lane.device() == v1::DEVICE_CPU) return absl::ZeroDuration();
  if (has_work_in_hand) return kLeftMax;
  absl::MutexLock lock(&mutex_);
  return std::min(kLeftMax, FirstResultTakes(lane.device(), now));
}

}  // namespace warpsmith
