// Which lanes have which task ready: others leave its candidates to these for a while.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_TASK_LANES_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_TASK_LANES_H_

#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "reward_service/grading/stages.h"
#include "reward_service/grading/waiting/lane_policy.h"

namespace warpsmith {

// A task that is ready on two GPUs costs two oracles and two references, and the driver makes their contexts one at a
// time for all GPUs of a host. Thread-safe. The lanes outlive it.
class TaskLanes {
 public:
  // A lane makes this task ready, and has it from then on.
  void Use(const std::string& task_key, const JudgeStage* lane, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Likewise: it begins to judge a candidate of it.
  void BeginJudgement(const std::string& task_key, const JudgeStage* lane, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Likewise: it has judged one, which `is_complete` or was cut short.
  void EndJudgement(const std::string& task_key, const JudgeStage* lane, bool is_complete, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A lane of `device` that has the task; null where none that serves has worked on it lately.
  const JudgeStage* Of(const std::string& task_key, v1::Device device, absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Where it is for this lane, among those of its device.
  TaskPlace PlaceOf(const std::string& task_key, const JudgeStage* lane, absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // How long this lane leaves a candidate to another that has its task ready.
  absl::Duration LeftMax(const JudgeStage& lane, bool has_work_in_hand, absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct LaneUse {
    absl::Time last;
    std::optional<absl::Time> first_begun = std::nullopt;     // of its judgements
    std::optional<absl::Duration> first_took = std::nullopt;  // from then until one was complete
  };
  using Uses = std::map<const JudgeStage*, LaneUse>;

  static bool Has(const JudgeStage& lane, const LaneUse& use, absl::Time now);
  // Of the tasks that lanes of `device` have, on the average. Infinite where none has judged any.
  absl::Duration FirstResultTakes(v1::Device device, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LaneUse& Touch(const std::string& task_key, const JudgeStage* lane, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::string, Uses> uses_ ABSL_GUARDED_BY(mutex_);  // by the keys of tasks
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_TASK_LANES_H_
