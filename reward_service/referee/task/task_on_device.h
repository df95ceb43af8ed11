// What a device keeps of a task, beside what the task itself keeps.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TASK_TASK_ON_DEVICE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TASK_TASK_ON_DEVICE_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "reward_service/referee/tensors/tensor_store.h"

namespace warpsmith {

class PreparedTask;
struct TaskLayout;

// What a task is made for, so far.
enum class TaskUse {
  kVerifying,  // it is examined, with what a turn of the device draws for the next judgement
  kTiming,     // and completed, with draws for two judgements: the next one's are made while one lasts
};

// Lives as long as its task. StartReference() and WarmReference() are called once, not at all where nothing is
// timed, by a thread that makes tasks, while the lane judges others or verifies a candidate of this one: what
// would disturb a call that is timed has to wait for the lane.
// INVALID_ARGUMENT: the task is at fault.
class TaskOnDevice {
 public:
  virtual ~TaskOnDevice() = default;
  // Calls that one step of timing makes at most, each on an input set of its own.
  virtual int NumBatchedCalls(const TaskLayout&) const { return 1; }
  // Of the device's memory: what a task with so many draws holds, its processes and buffers included. Of an empty
  // layout: before it is examined.
  virtual int64_t BytesOf(const TaskLayout&, int64_t /*num_draws*/, TaskUse) const { return 0; }
  // In which the task's draws lie.
  virtual TensorStore& store() const { return HostStore(); }
  // Whether others than who has `own_bytes` of its memory keep so much that who lacked some may have found it without
  // them.
  virtual bool IsCrowded(int64_t own_bytes) const { return store().IsCrowded(own_bytes); }
  // Whether memory was scarce since then: what was computed beside others may be of another algorithm for that.
  virtual bool WasScarceSince(absl::Time since) const { return store().WasScarceSince(since); }
  virtual bool HasPlenty() const { return store().HasPlenty(); }
  // Not null: the reference computes expected outputs on the device, too, and holds this meanwhile; see
  // TensorStore::turn().
  virtual DeviceTurn* turn() const { return nullptr; }
  // Whether the device has nothing to do, after a moment if need be: behind an answer of the oracle, or behind
  // processes that were killed, from which it recovers. For whoever has its turn.
  enum class Behind { kAnswer, kKilled };
  virtual absl::Status AwaitIdle(Behind /*what*/) { return absl::OkStatus(); }
  // For whoever has its turn alone: processes that wait there, stopped, end, for they keep memory of it, and may have
  // left it at work. Whether there were any.
  virtual bool EndWaiting() { return store().EndWaiting(); }
  // For whoever has the turn alone, or the lane: the reference's processes end, of this task. Others are started where
  // they are needed next. Whether there were any.
  virtual bool EndReference() { return false; }
  // Of an examined task: begins to start the processes of the reference that candidates are timed
  // beside. Does not wait for them.
  virtual absl::Status StartReference(const PreparedTask& task) = 0;
  // Of a task with its timing_draws(): waits for these processes and has them called until they are
  // warm, until `deadline` at most.
  virtual absl::Status WarmReference(const PreparedTask& task, absl::Time deadline) = 0;
};

// Makes it for a new task. Thread-safe.
using PlaceTask = std::function<std::unique_ptr<TaskOnDevice>()>;

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TASK_TASK_ON_DEVICE_H_
