#include "reward_service/grading/lane_slots.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace warpsmith {

LaneSlots::LaneSlots(JudgeStage* lane)
    : lane_(lane), num_slots_(static_cast<size_t>(lane->num_at_once())), work_(num_slots_) {
  if (num_slots_ == 1) return;
  for (size_t i = 0; i < num_slots_; ++i) threads_.emplace_back([this] { Serve(); });
}

LaneSlots::~LaneSlots() {
  work_.Close();
  for (std::thread& thread : threads_) thread.join();
}

void LaneSlots::AwaitFree() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &LaneSlots::HasFree));
}

void LaneSlots::AwaitAllFree() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &LaneSlots::AllFree));
}

void LaneSlots::AwaitOneMoreFree(absl::Duration wait_max) {
  absl::MutexLock lock(&mutex_);
  const size_t num_busy = busy_tasks_.size();
  const auto is_free = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return busy_tasks_.size() < num_busy; };
  mutex_.AwaitWithTimeout(absl::Condition(&is_free), wait_max);
}

absl::StatusOr<std::shared_ptr<HeldDevice>> LaneSlots::TakeDevice() {
  std::shared_ptr<HeldDevice> held = held_.lock();
  if (held != nullptr && !lane_->OthersWantDevice()) return held;
  held.reset();
  AwaitAllFree();  // also where the last that held it is just giving it up, which would end the next hold as well
  ASSIGN_OR_RETURN(HeldDevice taken, lane_->TakeDevice());
  held = std::make_shared<HeldDevice>(std::move(taken));
  held_ = held;
  return held;
}

void LaneSlots::Run(std::string task_key, std::function<void()> work) {
  {
    absl::MutexLock lock(&mutex_);
    busy_tasks_.push_back(task_key);
  }
  Work to_do{std::move(task_key), std::move(work)};
  if (threads_.empty()) return Do(to_do);
  WS_CHECK(work_.TryPush(std::move(to_do))) << "work for more slots than there are";
}

std::vector<std::string> LaneSlots::busy_tasks() const {
  absl::MutexLock lock(&mutex_);
  return busy_tasks_;
}

void LaneSlots::Serve() {
  pthread_setname_np(pthread_self(), "lane-slot");
  while (!work_.Finished()) {
    const std::optional<Work> work = work_.Pop(absl::InfiniteDuration());
    if (work) Do(*work);
  }
}

void LaneSlots::Do(const Work& work) {
  work.work();
  absl::MutexLock lock(&mutex_);
  busy_tasks_.erase(std::find(busy_tasks_.begin(), busy_tasks_.end(), work.task_key));
}

}  // namespace warpsmith
