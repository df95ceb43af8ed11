// A task of a pool, and what to do for it next, as functions of what is known of it.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TASK_POOLED_TASK_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TASK_POOLED_TASK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
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
  absl::Time last_used_at = absl::InfinitePast();
  int64_t device_bytes = 0;  // as of its last step
  int num_uses = 0;          // judgements; a task's draws retire after a number of them
  // Where tasks are completed by need: somebody is timed on it, or there are several who may be.
  bool wants_timing = false;
  // There, too: somebody is timed on it. The reference's process costs a context, of which a driver makes few a second,
  // and where no candidate is right nobody needs it.
  bool wants_reference = false;
  bool has_reference = false;       // it was started
  bool another_follows = false;     // another judgement of it waits for the present one
  bool is_judged = false;           // and nobody else begins to judge it
  int num_waiting = 0;              // judgements that have begun to wait for it
  bool wants_fresh = true;          // somebody waits for fresh draws, or will
  std::optional<FreshDraws> fresh;  // for the next judgement
  FreshDraws unshown;               // what judgements have left, at most its num_fresh_draws()
  bool has_oracle = false;
  bool busy = false;  // a step of it is queued or done
};

// By the keys of their sources.
using PooledTasks = std::map<std::string, std::shared_ptr<PooledTask>>;

// What the machine lacked once, memory of a GPU say, it may have the next time: that is no task's fault.
bool MachineFailed(const PooledTask& pooled);
// Judgements of it that run, or wait for it.
int NumJudgements(const PooledTask& pooled);
// Whether the reference's process is to be started now; elsewhere a task is completed with it.
bool WantsReference(const PooledTask& pooled);
// Whether there is another step to do, now that none is done.
bool WantsStep(const PooledTask& pooled);
// Whether a copy of `task` fits beside all that were used lately, which it must not drive out: each of these would be
// made again.
bool HasRoomForCopy(const PooledTasks& tasks, const PooledTask& task, int64_t device_bytes_max,
                    absl::Time now);
// Has a step of it, if it waits in the queue, done next.
void GoFirst(const std::shared_ptr<PooledTask>& pooled, std::deque<std::shared_ptr<PooledTask>>* queue);
// Of the tasks that have an oracle on the host the one that was used least lately; null while there are few.
std::shared_ptr<PooledTask> OracleToClose(const PooledTasks& tasks);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TASK_POOLED_TASK_H_
