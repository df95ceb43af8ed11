// Which lane has which task ready: others leave its candidates to that lane as long as they have other work.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_TASK_LANES_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_TASK_LANES_H_

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "reward_service/grading/stages.h"

namespace warpsmith {

// A task that is ready on two GPUs costs two oracles and two references, and the driver makes their contexts one at a
// time for all GPUs of a host. Thread-safe. The lanes outlive it.
class TaskLanes {
 public:
  // A lane works on this task now. It becomes the task's, unless another one that serves has worked on it lately.
  void Use(const std::string& task_key, const JudgeStage* lane, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // The task's lane among those of `device`; null where none has worked on it lately, or it is lost.
  const JudgeStage* Of(const std::string& task_key, v1::Device device, absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the task is another lane's of the same device.
  bool IsElsewhere(const std::string& task_key, const JudgeStage* lane, absl::Time now) const {
    const JudgeStage* const of_task = Of(task_key, lane->device(), now);
    return of_task != nullptr && of_task != lane;
  }

 private:
  struct Used {
    const JudgeStage* lane = nullptr;
    absl::Time at;
  };
  // By the keys of tasks; a task may be judged on several devices.
  using UsedTasks = std::map<std::string, Used>;
  mutable absl::Mutex mutex_;
  std::map<v1::Device, UsedTasks> used_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_TASK_LANES_H_
