#include "reward_service/referee/task/task_pool.h"

#include <pthread.h>
#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

// Judgements of one task on the same secret draws.
constexpr int kUsesMax = 256;
// A task that does not end holds up one of them, not all.
constexpr int kThreads = 2;

uint64_t RandomWord() {
  uint64_t word = 0;
  WS_CHECK(getrandom(&word, sizeof(word), 0) == sizeof(word)) << "the kernel gives no random bytes";
  return word;
}

}  // namespace

TaskPool::TaskPool(TaskLimits limits, Zygote* parent, const Lane* lane, int num_tasks_max)
    : limits_(limits),
      parent_(parent),
      lane_(lane),
      num_tasks_max_(static_cast<size_t>(std::max(1, num_tasks_max))),
      secret_(RandomWord()) {
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Work(); });
}

TaskPool::~TaskPool() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void TaskPool::Prefetch(const TaskSource& source, std::optional<uint64_t> seed) {
  absl::MutexLock lock(&mutex_);
  FindOrAdd(source, seed);
}

std::shared_ptr<PooledTask> TaskPool::FindOrAdd(const TaskSource& source, std::optional<uint64_t> seed) {
  const std::string key = seed ? absl::StrCat(source.key, "#", *seed) : source.key;
  std::shared_ptr<PooledTask>& pooled = tasks_[key];
  if (pooled != nullptr && pooled->num_uses >= kUsesMax) pooled = nullptr;
  if (pooled == nullptr) {
    pooled = std::make_shared<PooledTask>();
    const uint64_t stream = seed ? *seed : UniformWord(secret_, clock_);
    pooled->task = std::make_unique<PreparedTask>(source, stream, limits_, parent_, lane_->num_threads());
    queue_.push_back(pooled);
  }
  pooled->last_used = ++clock_;
  const std::shared_ptr<PooledTask> result = pooled;
  Evict();
  return result;
}

// Least recently used first, sparing those in somebody's hands.
void TaskPool::Evict() {
  while (tasks_.size() > num_tasks_max_) {
    auto oldest = tasks_.end();
    for (auto it = tasks_.begin(); it != tasks_.end(); ++it) {
      if (it->second.use_count() > 1) continue;
      if (oldest == tasks_.end() || it->second->last_used < oldest->second->last_used) oldest = it;
    }
    if (oldest == tasks_.end()) return;
    tasks_.erase(oldest);
  }
}

absl::StatusOr<std::shared_ptr<PooledTask>> TaskPool::Get(const TaskSource& source, bool for_timing,
                                                          std::optional<uint64_t> seed, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<PooledTask> pooled = FindOrAdd(source, seed);
  // Counted when a judgement ends its use of the pool's entry, so that both of its calls see one task.
  if (for_timing) ++pooled->num_uses;
  // What is waited for goes first.
  if (auto place = std::find(queue_.begin(), queue_.end(), pooled); place != queue_.end()) {
    queue_.erase(place);
    queue_.push_front(pooled);
  }
  const auto ready = [&] {
    return !pooled->status.ok() || (for_timing ? pooled->completed : pooled->examined);
  };
  if (!mutex_.AwaitWithDeadline(absl::Condition(&ready), deadline)) {
    return absl::DeadlineExceededError("the task was not ready before the deadline");
  }
  if (!pooled->status.ok()) return pooled->status;
  return pooled;
}

void TaskPool::Work() {
  pthread_setname_np(pthread_self(), "task-maker");
  if (const absl::Status status = lane_->StayOut(); !status.ok()) LogWarning(status.ToString());
  for (;;) {
    std::shared_ptr<PooledTask> pooled;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &TaskPool::HasWork));
      if (closing_) return;
      pooled = queue_.front();
      queue_.pop_front();
    }
    DoOneStep(pooled);
  }
}

void TaskPool::DoOneStep(const std::shared_ptr<PooledTask>& pooled) {
  const bool first = !pooled->examined;  // written by this thread only
  const absl::Status status = first ? pooled->task->Examine() : pooled->task->Complete();
  absl::MutexLock lock(&mutex_);
  pooled->status = status;
  if (!status.ok()) return;
  (first ? pooled->examined : pooled->completed) = true;
  if (first) queue_.push_back(pooled);
}

}  // namespace warpsmith
