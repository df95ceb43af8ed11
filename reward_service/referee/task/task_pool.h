// Tasks made ready ahead of their use, by threads off the lane.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TASK_TASK_POOL_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TASK_TASK_POOL_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "reward_service/measure/lane.h"
#include "reward_service/referee/task/pooled_task.h"
#include "reward_service/referee/task/prepared_task.h"

namespace warpsmith {

// Threads that make tasks: one that does not end holds up one of them, not all.
inline constexpr int kTaskMakersMin = 2;

// Keeps `num_tasks_max` tasks, or fewer where they would hold more than `device_bytes_max` of a device's memory
// together; and those in somebody's hands. Thread-safe.
class TaskPool {
 public:
  TaskPool(TaskLimits limits, Zygote* parent, const Lane* lane, PlaceTask place, int num_tasks_max,
           int64_t device_bytes_max = std::numeric_limits<int64_t>::max(), int num_threads = kTaskMakersMin);
  ~TaskPool();

  // Starts making a task, or its next fresh draws; returns at once. With `seed`, its draws are a function of it
  // (tests).
  void Prefetch(const TaskSource& source, std::optional<uint64_t> seed = std::nullopt)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A judgement begins, of which some draws are its own: the task, once it can be used for verification and the
  // judgement of it before has ended. With `another_follows` draws for another one are made meanwhile.
  // INVALID_ARGUMENT: the task is at fault, and why. DEADLINE_EXCEEDED; INTERNAL or RESOURCE_EXHAUSTED for failures of
  // the machine, and where others had the host's memory until the deadline. The holder keeps the task alive, and must
  // End() it before it begins another judgement of it.
  absl::StatusOr<std::shared_ptr<PooledTask>> Begin(const TaskSource& source, std::optional<uint64_t> seed,
                                                    bool another_follows, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Has the task made ready for timing, which is waited for later.
  void WantCompleted(const std::shared_ptr<PooledTask>& pooled) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until the task can be used for timing, too. Fails as Begin() does.
  absl::Status AwaitCompleted(const std::shared_ptr<PooledTask>& pooled, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The judgement's own draws leave the task's lists: what no jail had is kept for the next. The rest, and the task
  // where nobody else has it, are freed by those who make tasks: on a device that is one for all in a turn, so that
  // this disturbs nobody who is timed, and the judgement does not wait for it.
  void End(std::shared_ptr<PooledTask> pooled) ABSL_LOCKS_EXCLUDED(mutex_);
  // Tasks that are judged, or that a judgement waits for; those that are being recorded are none.
  int num_judged() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets go of all tasks that are in nobody's hands: who lacked a device's memory may find it then.
  void MakeRoom() ABSL_LOCKS_EXCLUDED(mutex_);

  // For whoever has the device's turn alone and finds work there: oracles and references of all tasks end, those too
  // that wait to be freed, and each task has the device alone from now on.
  void EndOracles() ABSL_LOCKS_EXCLUDED(mutex_);
  // For whoever has the turn alone and may lack memory: references of all tasks end, and are started again where they
  // are needed next. Whether there were any.
  bool EndReferences() ABSL_LOCKS_EXCLUDED(mutex_);

  // The task for what does not depend on its draws: no judgement begins. Fails as Begin() does. Return() gives it back.
  absl::StatusOr<std::shared_ptr<PooledTask>> GetExamined(const TaskSource& source, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(std::shared_ptr<PooledTask> pooled) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Await(const std::shared_ptr<PooledTask>& pooled, absl::FunctionRef<bool()> ready,
                     absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<PooledTask> FindOrAdd(const TaskSource& source, std::optional<uint64_t> seed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<PooledTask> MakePooled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enqueue(const std::shared_ptr<PooledTask>& pooled) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Settle(const std::shared_ptr<PooledTask>& pooled) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WantTiming(const std::shared_ptr<PooledTask>& pooled) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseIdleOracles() ABSL_LOCKS_EXCLUDED(mutex_);
  bool DropOldest(bool on_host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropFromHost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Evict() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // To tasks that wait for it, in the order in which they were asked for last. Idle tasks are dropped where that makes
  // enough room. What a dropped task has counts until it is freed.
  void GiveHostMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetGo(std::shared_ptr<PooledTask> pooled) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(std::shared_ptr<PooledTask> pooled) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreeEvicted() ABSL_LOCKS_EXCLUDED(mutex_);
  void FreeUsed() ABSL_LOCKS_EXCLUDED(mutex_);
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  void DoOneStep(const std::shared_ptr<PooledTask>& pooled) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndStep(const std::shared_ptr<PooledTask>& pooled, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closing_ || !queue_.empty() || !evicted_.empty() || !used_.empty();
  }

  const TaskLimits limits_;
  Zygote* const parent_;
  const Lane* const lane_;
  const PlaceTask place_;
  const size_t num_tasks_max_;
  const int64_t device_bytes_max_;
  const uint64_t secret_;

  mutable absl::Mutex mutex_;
  PooledTasks tasks_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<PooledTask>> queue_ ABSL_GUARDED_BY(mutex_);  // steps to do; a task at most once
  std::vector<std::weak_ptr<PooledTask>> all_
      ABSL_GUARDED_BY(mutex_);  // that are not freed, wherever they are
  std::vector<std::shared_ptr<PooledTask>> evicted_ ABSL_GUARDED_BY(mutex_);  // not yet freed
  struct UsedDraws {
    DeviceTurn* turn;
    FreshDraws draws;
  };
  std::vector<UsedDraws> used_ ABSL_GUARDED_BY(mutex_);  // not yet freed
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TASK_TASK_POOL_H_
