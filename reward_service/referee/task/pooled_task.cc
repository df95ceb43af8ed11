#include "reward_service/referee/task/pooled_task.h"

#include <algorithm>

namespace warpsmith {
namespace {

// Kept alive for the tasks that were used last: a start costs ten draws. On a GPU each task has its own, for a start
// costs a hundred draws there, and its memory is counted with the task's.
constexpr int kOraclesMax = 4;

}  // namespace

bool MachineFailed(const PooledTask& pooled) {
  return !pooled.status.ok() && !absl::IsInvalidArgument(pooled.status);
}

bool IsMadeByNeed(const PooledTask& pooled) { return pooled.task->on_device().turn() != nullptr; }

void CountBytes(PooledTask* pooled) {
  pooled->device_bytes = pooled->host_bytes = 0;
  // What a task at fault has is of no use, and goes.
  if (pooled->task == nullptr || absl::IsInvalidArgument(pooled->status)) return;
  const TaskUse use = pooled->wants_timing ? TaskUse::kTiming : TaskUse::kVerifying;
  pooled->device_bytes = pooled->task->BytesIn(KeptIn::kDevice, use);
  if (!pooled->waits_for_host) pooled->host_bytes = pooled->task->BytesIn(KeptIn::kHost, TaskUse::kTiming);
}

bool WantsCompletion(const PooledTask& pooled) {
  return !pooled.completed && (pooled.wants_timing || !IsMadeByNeed(pooled));
}

size_t NumFreshToMake(const PooledTask& pooled) {
  const PreparedTask& task = *pooled.task;
  const size_t of_judgement = task.num_fresh_draws(), had = pooled.fresh.size();
  const size_t lacking = pooled.is_judged && pooled.completed ? of_judgement - task.num_own_draws() : 0;
  if (had < lacking) return lacking - had;
  if (!pooled.wants_fresh) return 0;
  // Each is gigabytes: they are made in the place of those of the judgement before.
  if (pooled.is_judged && task.are_draws_on_host()) return 0;
  const size_t of_next = pooled.completed ? of_judgement : std::min(of_judgement, task.num_draws_of_turn());
  return lacking + of_next - std::min(had, lacking + of_next);
}

bool WantsStep(const PooledTask& pooled) {
  if (!pooled.examined) return !pooled.waits_for_host;
  return WantsCompletion(pooled) || NumFreshToMake(pooled) > 0;
}

void GoFirst(const std::shared_ptr<PooledTask>& pooled, std::deque<std::shared_ptr<PooledTask>>* queue) {
  const auto place = std::find(queue->begin(), queue->end(), pooled);
  if (place == queue->end()) return;
  queue->erase(place);
  queue->push_front(pooled);
}

int64_t HostBytes(const PooledTasks& tasks) {
  int64_t bytes = 0;
  for (const auto& [key, pooled] : tasks) bytes += pooled->host_bytes;
  return bytes;
}

int64_t HostBytesInHands(const PooledTasks& tasks) {
  int64_t bytes = 0;
  for (const auto& [key, pooled] : tasks) bytes += pooled.use_count() > 1 ? pooled->host_bytes : 0;
  return bytes;
}

std::shared_ptr<PooledTask> FirstThatWaitsForHost(const PooledTasks& tasks) {
  std::shared_ptr<PooledTask> first;
  for (const auto& [key, pooled] : tasks) {
    if (pooled->waits_for_host && (first == nullptr || pooled->last_used < first->last_used)) first = pooled;
  }
  return first;
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
