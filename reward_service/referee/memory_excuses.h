// What a judgement excuses because others had memory of its device, and how often.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_MEMORY_EXCUSES_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_MEMORY_EXCUSES_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "reward_service/referee/judging_device.h"
#include "reward_service/referee/process/fault.h"
#include "reward_service/referee/task/prepared_task.h"
#include "reward_service/referee/task/task_pool.h"

namespace warpsmith {

// Of one judgement, for its thread while it has the device alone. Beside others want of memory is told by
// JudgingDevice::MayBeOthersDoing(); alone there are processes of other judgements that are kept, stopped, to be timed
// or to end.
class MemoryExcuses {
 public:
  // `device` outlives it.
  explicit MemoryExcuses(JudgingDevice* device) : device_(device) {}

  // Before anything runs that counts: kept processes end where they may leave it too little memory, and then the
  // references of all tasks of `pool`. What lacks memory may go a slower way without a word.
  void MakeRoom(TaskPool* pool);
  // After that, before anything is timed: RESOURCE_EXHAUSTED, to be judged again when nobody else is, where tasks of
  // `pool` that are judged beside this one leave too little still.
  absl::Status CheckRoom(const PreparedTask& task, TaskPool* pool);
  // Of a candidate's fault: whether it may have come of memory that kept processes had since then, which have ended
  // now. The candidate is to be seen once more. Once a judgement: from then on MakeRoom() leaves none beside it.
  bool IsExcused(const Fault& fault, absl::Time since);
  // Of a candidate's fault that is not excused: RESOURCE_EXHAUSTED, to be judged again when nobody else is, where it
  // says that it lacked memory and tasks may be to blame. They are where, once its process has ended, others than its
  // task's own draws have over a quarter of the memory, and less than a quarter is free. Of a task whose draws lie on
  // the host no part that is free is enough: its candidates may need more.
  absl::Status CheckTasks(const Fault& fault, const PreparedTask& task);
  // `attempt` for the reference, and where others keep memory once more without kept processes. RESOURCE_EXHAUSTED:
  // memory that others keep is wanting still, which is no fault of the task's.
  absl::Status Try(const PreparedTask& task, absl::FunctionRef<absl::Status()> attempt);
  // `status` of a reference beside its candidate: RESOURCE_EXHAUSTED in the place of the task's fault where it says
  // that it lacks memory, for it did not without the candidate. Of a host's memory each process has a part of its own.
  absl::Status OfReference(absl::Status status) const;

 private:
  JudgingDevice* const device_;
  bool has_lacked_ = false;  // memory that kept processes had
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_MEMORY_EXCUSES_H_
