#include "reward_service/referee/task/pooled_task.h"

#include <algorithm>

namespace warpsmith {
namespace {

// Kept alive for the tasks that were used last: a start costs ten draws. On a GPU each task has its own, for a start
// costs a hundred draws there, and its memory is counted with the task's.
constexpr int kOraclesMax = 4;
// Candidates of one task follow each other within it.
constexpr absl::Duration kLately = absl::Seconds(10);

}  // namespace

bool MachineFailed(const PooledTask& pooled) {
  return !pooled.status.ok() && !absl::IsInvalidArgument(pooled.status);
}

int NumJudgements(const PooledTask& pooled) { return pooled.num_waiting + (pooled.is_judged ? 1 : 0); }

bool HasRoomForCopy(const PooledTasks& tasks, const PooledTask& task, int64_t device_bytes_max,
                    absl::Time now) {
  int64_t bytes = task.device_bytes;
  for (const auto& [key, other] : tasks) {
    if (now - other->last_used_at <= kLately) bytes += other->device_bytes;
  }
  return bytes <= device_bytes_max;
}

bool WantsReference(const PooledTask& pooled) {
  return pooled.wants_reference && !pooled.has_reference && pooled.task->on_device().turn() != nullptr;
}

bool WantsStep(const PooledTask& pooled) {
  if (!pooled.examined) return true;
  // A device that is one for all has better things to do: of most programs that are recorded none is timed.
  const bool by_need = pooled.task->on_device().turn() != nullptr;
  if (by_need && !pooled.wants_timing) return false;
  return WantsReference(pooled) || !pooled.completed || (pooled.wants_fresh && !pooled.fresh);
}

void GoFirst(const std::shared_ptr<PooledTask>& pooled, std::deque<std::shared_ptr<PooledTask>>* queue) {
  const auto place = std::find(queue->begin(), queue->end(), pooled);
  if (place == queue->end()) return;
  queue->erase(place);
  queue->push_front(pooled);
}

std::shared_ptr<PooledTask> OracleToClose(const PooledTasks& tasks) {
  int num_oracles = 0;
  std::shared_ptr<PooledTask> oldest;
  for (const auto& [key, pooled] : tasks) {
    if (!pooled->has_oracle || pooled->task->on_device().store().on_gpu()) continue;
    ++num_oracles;
    if (pooled->busy) continue;
    if (oldest == nullptr || pooled->last_used < oldest->last_used) oldest = pooled;
  }
  return num_oracles > kOraclesMax ? oldest : nullptr;
}

}  // namespace warpsmith
