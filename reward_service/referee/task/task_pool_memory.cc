// The memory of a pool's tasks: who is dropped, who waits for it, and when it is given back.
#include <utility>

#include "reward_service/referee/task/task_pool.h"
#include "reward_service/referee/task/task_turns.h"

namespace warpsmith {

bool TaskPool::IsFull() const {
  int64_t device_bytes = 0;
  for (const auto& [key, pooled] : tasks_) device_bytes += pooled->device_bytes;
  return tasks_.size() > num_tasks_max_ || device_bytes > device_bytes_max_;
}

// What a task at fault has left is worth nothing; that it is at fault is remembered. Then the least recently used
// first, sparing those in somebody's hands.
void TaskPool::Evict() {
  for (auto& [key, pooled] : tasks_) {
    if (pooled->status.ok() || pooled->task == nullptr || pooled.use_count() > 1) continue;
    const std::shared_ptr<PooledTask> remains = MakePooled();
    remains->task = std::move(pooled->task);
    remains->fresh = std::exchange(pooled->fresh, {});
    remains->host_bytes = remains->task->BytesIn(KeptIn::kHost, TaskUse::kTiming);
    pooled->has_oracle = false;
    CountBytes(pooled.get());
    evicted_.push_back(remains);
  }
  while (IsFull() && DropOldest(/*on_host=*/false)) {
  }
  DropFromHost();
  GiveHostMemory();
}

void TaskPool::DropFromHost() {
  while (HostBytes(tasks_) > limits_.host_draw_bytes_max && DropOldest(/*on_host=*/true)) {
  }
}

void TaskPool::GiveHostMemory() {
  while (const std::shared_ptr<PooledTask> first = FirstThatWaitsForHost(tasks_)) {
    first->waits_for_host = false;
    CountBytes(first.get());
    if (HostBytesInHands(tasks_) <= limits_.host_draw_bytes_max) DropFromHost();
    int64_t not_freed = 0;
    for (const std::weak_ptr<PooledTask>& made : all_) {
      if (const std::shared_ptr<PooledTask> pooled = made.lock()) not_freed += pooled->host_bytes;
    }
    if (not_freed > limits_.host_draw_bytes_max) {
      first->waits_for_host = true;
      CountBytes(first.get());
      return;
    }
    first->task->set_may_use_host(true);
    Enqueue(first);
  }
}

// Of all, or of those that have draws on the host. False where all are in somebody's hands.
bool TaskPool::DropOldest(bool on_host) {
  auto oldest = tasks_.end();
  for (auto it = tasks_.begin(); it != tasks_.end(); ++it) {
    if (it->second.use_count() > 1 || (on_host && it->second->host_bytes == 0)) continue;
    if (oldest == tasks_.end() || it->second->last_used < oldest->second->last_used) oldest = it;
  }
  if (oldest == tasks_.end()) return false;
  Drop(std::move(oldest->second));
  tasks_.erase(oldest);
  return true;
}

void TaskPool::MakeRoom() {
  absl::MutexLock lock(&mutex_);
  while (DropOldest(/*on_host=*/false)) {
  }
}

bool TaskPool::EndReferences() {
  bool have_ended = false;
  absl::MutexLock lock(&mutex_);
  for (const std::weak_ptr<PooledTask>& made : all_) {
    const std::shared_ptr<PooledTask> pooled = made.lock();
    if (pooled != nullptr && pooled->task != nullptr) have_ended |= pooled->task->on_device().EndReference();
  }
  return have_ended;
}

// Ends of processes and memory that is given back are work for a GPU, too, that would disturb who is timed there.
void TaskPool::FreeEvicted() {
  std::vector<std::shared_ptr<PooledTask>> evicted;
  {
    absl::MutexLock lock(&mutex_);
    evicted.swap(evicted_);
  }
  for (const auto& pooled : evicted) {
    const auto turn = TurnToEnd(pooled->task->on_device().turn());
    std::unique_ptr<PreparedTask> task;
    {
      absl::MutexLock lock(&mutex_);
      task = std::move(pooled->task);  // which EndOracles() does not see any more
    }
    pooled->fresh.clear();
    task.reset();
    absl::MutexLock lock(&mutex_);
    pooled->host_bytes = 0;
    GiveHostMemory();
  }
}

void TaskPool::FreeUsed() {
  std::vector<UsedDraws> used;
  {
    absl::MutexLock lock(&mutex_);
    used.swap(used_);
  }
  for (UsedDraws& of_judgement : used) {
    const auto turn = TurnToEnd(of_judgement.turn);
    of_judgement.draws.clear();
  }
}

// Whoever is the last to have a task in hand has it freed where it is at fault or retired, be it the caller or the
// thread that did a step of it.
void TaskPool::LetGo(std::shared_ptr<PooledTask> pooled) {
  Drop(std::move(pooled));
  Evict();
}

// What nobody else has is freed by the threads that make tasks.
void TaskPool::Drop(std::shared_ptr<PooledTask> pooled) {
  if (pooled.use_count() == 1 && pooled->task != nullptr) evicted_.push_back(std::move(pooled));
}

}  // namespace warpsmith
