// A task of a pool, and what to do for it next, as functions of what is known of it.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TASK_POOLED_TASK_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TASK_POOLED_TASK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "reward_service/referee/task/prepared_task.h"

namespace warpsmith {

// How far a task has come. The task itself may be used once the stage asked for is reached.
struct PooledTask {
  std::unique_ptr<PreparedTask> task;  // null once it is at fault and nobody uses it
  bool examined = false;
  bool completed = false;
  // Of the step that failed. A task at fault keeps it, so that it costs once; after a failure of the machine who asks
  // next has the task made anew.
  absl::Status status;
  uint64_t last_used = 0;
  int64_t device_bytes = 0;  // as of its last step
  // Likewise of the host's, but all that it needs to be timed; 0 while it waits for that.
  int64_t host_bytes = 0;
  int num_uses = 0;  // judgements; a task's draws retire after a number of them
  // A candidate is right. Where a device is one for all, the task is completed for that alone, and the memory that
  // timing needs is counted from then on: where no candidate is right nobody needs those draws, nor a reference, whose
  // process costs a context, of which a driver makes few a second.
  bool wants_timing = false;
  bool is_judged = false;       // and nobody else begins to judge it
  int num_waiting = 0;          // judgements that have begun to wait for it
  int num_awaiting_steps = 0;   // who waits for its steps, so that they are done before those of others
  bool wants_fresh = false;     // a judgement waits for fresh draws, or will, beside the present one
  FreshDraws fresh;             // that nobody has; some are what judgements have left
  bool waits_for_host = false;  // for room for its draws there, before it is examined
  bool has_oracle = false;
  bool busy = false;  // a step of it is queued or done
};

// By the keys of their sources.
using PooledTasks = std::map<std::string, std::shared_ptr<PooledTask>>;

// What the machine lacked once, memory of a GPU say, it may have the next time: that is no task's fault.
bool MachineFailed(const PooledTask& pooled);
// Whether its device is one for all judgements: what is made there for nobody delays somebody.
bool IsMadeByNeed(const PooledTask& pooled);
// Of a device's memory and the host's: what it holds, or will once its next step is done.
void CountBytes(PooledTask* pooled);
// Whether the step after its examination is to be done.
bool WantsCompletion(const PooledTask& pooled);
// How many fresh draws the next step makes: those that the present judgement lacks to be timed, and after these those
// of the next one. To verify that, one is enough, so until somebody was right they are what a turn of the device gives.
size_t NumFreshToMake(const PooledTask& pooled);
// Whether there is another step to do, now that none is done.
bool WantsStep(const PooledTask& pooled);
// Has a step of it, if it waits in the queue, done next.
void GoFirst(const std::shared_ptr<PooledTask>& pooled, std::deque<std::shared_ptr<PooledTask>>* queue);
// Of the host's memory, what tasks have, or those that somebody has in hand.
int64_t HostBytes(const PooledTasks& tasks);
int64_t HostBytesInHands(const PooledTasks& tasks);
// Of those that wait for it the one that was asked for least recently; null where none waits.
std::shared_ptr<PooledTask> FirstThatWaitsForHost(const PooledTasks& tasks);
// Of the tasks that have an oracle on the host the one that was used least lately; null while there are few.
std::shared_ptr<PooledTask> OracleToClose(const PooledTasks& tasks);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TASK_POOLED_TASK_H_
