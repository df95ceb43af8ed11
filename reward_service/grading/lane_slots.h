// The judgements that one lane makes at once, each on a thread of its own.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_LANE_SLOTS_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_LANE_SLOTS_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/bounded_queue.h"
#include "reward_service/grading/stages.h"

namespace warpsmith {

// For one thread, that of the lane's loop. Its end waits for the judgements that have begun.
class LaneSlots {
 public:
  // As many as the lane's num_at_once(), which outlives this. Of one the work is done by the calling thread.
  explicit LaneSlots(JudgeStage* lane);
  ~LaneSlots();
  LaneSlots(const LaneSlots&) = delete;
  LaneSlots& operator=(const LaneSlots&) = delete;

  void AwaitFree() ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitAllFree() ABSL_LOCKS_EXCLUDED(mutex_);
  // Until one more is free, no longer than `wait_max`.
  void AwaitOneMoreFree(absl::Duration wait_max) ABSL_LOCKS_EXCLUDED(mutex_);

  // The lane's device, which judgements that overlap share: it is given up when the last of them ends. Where another
  // process wants it nobody joins them: their end is waited for, and then that process. Fails as
  // JudgeStage::TakeDevice.
  absl::StatusOr<std::shared_ptr<HeldDevice>> TakeDevice();
  // In a free slot: AwaitFree() was called. `work` is on the task of this key, and gives the device up.
  void Run(std::string task_key, std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the work that is being done.
  std::vector<std::string> busy_tasks() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Work {
    std::string task_key;
    std::function<void()> work;
  };

  void Serve() ABSL_LOCKS_EXCLUDED(mutex_);
  void Do(const Work& work) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasFree() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return busy_tasks_.size() < num_slots_; }
  bool AllFree() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return busy_tasks_.empty(); }

  JudgeStage* const lane_;
  const size_t num_slots_;
  std::weak_ptr<HeldDevice> held_;
  BoundedQueue<Work> work_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> busy_tasks_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // none where the loop's own thread is enough
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_LANE_SLOTS_H_
