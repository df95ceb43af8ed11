#include "reward_service/referee/task/task_pool.h"

#include <pthread.h>
#include <sys/random.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/task/task_turns.h"

namespace warpsmith {
namespace {

// Judgements of one task on the same secret draws, apart from those that are fresh.
constexpr int kUsesMax = 256;

FreshDraws TakeFresh(size_t num_draws, PooledTask* pooled) {
  FreshDraws& fresh = pooled->fresh;
  const auto end = fresh.begin() + static_cast<ptrdiff_t>(num_draws);
  FreshDraws taken(std::make_move_iterator(fresh.begin()), std::make_move_iterator(end));
  fresh.erase(fresh.begin(), end);
  return taken;
}

uint64_t RandomWord() {
  uint64_t word = 0;
  WS_CHECK(getrandom(&word, sizeof(word), 0) == sizeof(word)) << "the kernel gives no random bytes";
  return word;
}

}  // namespace

TaskPool::TaskPool(TaskLimits limits, Zygote* parent, const Lane* lane, PlaceTask place, int num_tasks_max,
                   int64_t device_bytes_max, int num_threads)
    : limits_(limits),
      parent_(parent),
      lane_(lane),
      place_(std::move(place)),
      num_tasks_max_(static_cast<size_t>(std::max(1, num_tasks_max))),
      device_bytes_max_(device_bytes_max),
      secret_(RandomWord()) {
  for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { Work(); });
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
  const std::shared_ptr<PooledTask> pooled = FindOrAdd(source, seed);
  // To the first judgement all draws are new; and of most programs that are recorded none is timed.
  if (pooled->num_uses > 0 || (pooled->task != nullptr && !IsMadeByNeed(*pooled))) pooled->wants_fresh = true;
  if (!pooled->busy) Settle(pooled);
}

std::shared_ptr<PooledTask> TaskPool::MakePooled() {
  all_.erase(std::remove_if(all_.begin(), all_.end(), [](const auto& pooled) { return pooled.expired(); }),
             all_.end());
  auto pooled = std::make_shared<PooledTask>();
  all_.push_back(pooled);
  return pooled;
}

std::shared_ptr<PooledTask> TaskPool::FindOrAdd(const TaskSource& source, std::optional<uint64_t> seed) {
  const std::string key = seed ? absl::StrCat(source.key, "#", *seed) : source.key;
  std::shared_ptr<PooledTask>& pooled = tasks_[key];
  if (pooled != nullptr && (pooled->num_uses >= kUsesMax || MachineFailed(*pooled))) {
    Drop(std::exchange(pooled, nullptr));
  }
  if (pooled == nullptr) {
    pooled = MakePooled();
    const uint64_t stream = seed ? *seed : UniformWord(secret_, clock_);
    pooled->task =
        std::make_unique<PreparedTask>(source, stream, limits_, parent_, lane_->num_threads(), place_);
    pooled->task->set_may_use_host(false);
    CountBytes(pooled.get());
    Enqueue(pooled);
  }
  pooled->last_used = ++clock_;
  const std::shared_ptr<PooledTask> result = pooled;
  Evict();
  return result;
}

absl::StatusOr<std::shared_ptr<PooledTask>> TaskPool::Begin(const TaskSource& source,
                                                            std::optional<uint64_t> seed,
                                                            bool another_follows, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<PooledTask> pooled = FindOrAdd(source, seed);
  const auto is_first = [&] { return pooled->num_uses == 0; };
  if (another_follows || pooled->is_judged || pooled->num_waiting > 0 || !is_first()) {
    pooled->wants_fresh = true;
  }
  const auto ready = [&] {
    return pooled->examined && !pooled->is_judged && (is_first() || !pooled->fresh.empty());
  };
  ++pooled->num_waiting;
  const absl::Status status = Await(pooled, ready, deadline);
  --pooled->num_waiting;
  if (!status.ok()) {
    LetGo(std::move(pooled));
    return status;
  }
  pooled->is_judged = true;
  if (!is_first()) pooled->task->Renew(TakeFresh(1, pooled.get()));
  ++pooled->num_uses;
  pooled->wants_fresh = another_follows || pooled->num_waiting > 0;
  if (!pooled->busy) Settle(pooled);
  return pooled;
}

void TaskPool::WantCompleted(const std::shared_ptr<PooledTask>& pooled) {
  absl::MutexLock lock(&mutex_);
  WantTiming(pooled);
}

absl::Status TaskPool::AwaitCompleted(const std::shared_ptr<PooledTask>& pooled, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  WantTiming(pooled);
  const auto num_lacking = [&] { return pooled->task->num_fresh_draws() - pooled->task->num_own_draws(); };
  const auto ready = [&] { return pooled->completed && pooled->fresh.size() >= num_lacking(); };
  RETURN_IF_ERROR(Await(pooled, ready, deadline));
  pooled->task->Renew(TakeFresh(num_lacking(), pooled.get()));
  if (!pooled->busy) Settle(pooled);
  return absl::OkStatus();
}

void TaskPool::End(std::shared_ptr<PooledTask> pooled) {
  FreshDraws used;
  DeviceTurn* const turn = pooled->task->on_device().turn();
  {
    absl::MutexLock lock(&mutex_);
    for (auto& draw : pooled->task->Forget()) {
      // As many as two judgements have, as while it lasted.
      const bool is_kept = !draw->shown && pooled->fresh.size() < 2 * pooled->task->num_fresh_draws();
      (is_kept ? pooled->fresh : used).push_back(std::move(draw));
    }
  }
  if (pooled->task->are_draws_on_host()) used.clear();  // no work for a GPU
  absl::MutexLock lock(&mutex_);
  pooled->is_judged = false;
  if (!used.empty()) used_.push_back({turn, std::move(used)});
  if (!pooled->busy) Settle(pooled);
  LetGo(std::move(pooled));
}

int TaskPool::num_judged() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(std::count_if(all_.begin(), all_.end(), [](const auto& made) {
    const std::shared_ptr<PooledTask> pooled = made.lock();
    return pooled != nullptr && pooled->task != nullptr && (pooled->is_judged || pooled->num_waiting > 0);
  }));
}

void TaskPool::EndOracles() {
  absl::MutexLock lock(&mutex_);
  for (const std::weak_ptr<PooledTask>& made : all_) {
    const std::shared_ptr<PooledTask> pooled = made.lock();
    if (pooled != nullptr && pooled->task != nullptr) pooled->task->EndProcesses();
  }
}

absl::StatusOr<std::shared_ptr<PooledTask>> TaskPool::GetExamined(const TaskSource& source,
                                                                  absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<PooledTask> pooled = FindOrAdd(source, std::nullopt);
  const auto ready = [&] { return pooled->examined; };
  if (const absl::Status status = Await(pooled, ready, deadline); !status.ok()) {
    LetGo(std::move(pooled));
    return status;
  }
  return pooled;
}

void TaskPool::Return(std::shared_ptr<PooledTask> pooled) {
  absl::MutexLock lock(&mutex_);
  LetGo(std::move(pooled));
}

absl::Status TaskPool::Await(const std::shared_ptr<PooledTask>& pooled, absl::FunctionRef<bool()> ready,
                             absl::Time deadline) {
  if (!pooled->busy) Settle(pooled);
  GoFirst(pooled, &queue_);
  const auto decided = [&] { return !pooled->status.ok() || ready(); };
  ++pooled->num_awaiting_steps;
  const bool in_time = mutex_.AwaitWithDeadline(absl::Condition(&decided), deadline);
  --pooled->num_awaiting_steps;
  if (!in_time && pooled->waits_for_host)
    return absl::ResourceExhaustedError("other tasks had the host's memory until the deadline");
  if (!in_time) return absl::DeadlineExceededError("the task was not ready before the deadline");
  return pooled->status;
}

void TaskPool::Enqueue(const std::shared_ptr<PooledTask>& pooled) {
  pooled->busy = true;
  queue_.push_back(pooled);
  if (pooled->num_awaiting_steps > 0) GoFirst(pooled, &queue_);
}

// After a step, or when nothing is being done: whether there is another one to do.
void TaskPool::Settle(const std::shared_ptr<PooledTask>& pooled) {
  pooled->busy = false;
  if (pooled->status.ok() && WantsStep(*pooled)) Enqueue(pooled);
}

void TaskPool::WantTiming(const std::shared_ptr<PooledTask>& pooled) {
  pooled->wants_timing = true;
  CountBytes(pooled.get());
  Evict();
  if (!pooled->busy) Settle(pooled);
  GoFirst(pooled, &queue_);
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
      if (!queue_.empty()) {
        pooled = queue_.front();
        queue_.pop_front();
      }
    }
    FreeEvicted();  // the step may need that memory
    if (pooled == nullptr) {
      FreeUsed();
      continue;
    }
    DoOneStep(pooled);
    {
      absl::MutexLock lock(&mutex_);
      LetGo(std::move(pooled));
    }
    FreeEvicted();
    FreeUsed();
    CloseIdleOracles();
  }
}

void TaskPool::DoOneStep(const std::shared_ptr<PooledTask>& pooled) {
  PreparedTask& task = *pooled->task;
  // Stages are written by whoever does a step, one at a time.
  const auto end = [&](bool* stage, const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    *stage = status.ok();
    EndStep(pooled, status);
  };
  if (!pooled->examined) return end(&pooled->examined, task.Examine());
  bool completes = false;
  size_t num_draws = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (!WantsStep(*pooled)) return Settle(pooled);  // who did has ended meanwhile
    completes = WantsCompletion(*pooled);
    num_draws = NumFreshToMake(*pooled);
  }
  if (completes) return end(&pooled->completed, task.Complete());
  absl::StatusOr<FreshDraws> fresh = task.MakeFresh(num_draws);
  absl::MutexLock lock(&mutex_);
  if (fresh.ok()) std::move(fresh->begin(), fresh->end(), std::back_inserter(pooled->fresh));
  EndStep(pooled, fresh.status());
}

void TaskPool::EndStep(const std::shared_ptr<PooledTask>& pooled, const absl::Status& status) {
  pooled->waits_for_host = absl::IsCancelled(status);
  pooled->status = pooled->waits_for_host ? absl::OkStatus() : status;
  pooled->has_oracle = true;
  CountBytes(pooled.get());
  Settle(pooled);
  Evict();
  while (absl::IsResourceExhausted(status) && DropOldest(/*on_host=*/false)) {
  }
}

void TaskPool::CloseIdleOracles() {
  for (;;) {
    std::shared_ptr<PooledTask> pooled;
    {
      absl::MutexLock lock(&mutex_);
      pooled = OracleToClose(tasks_);
      if (pooled == nullptr) return;
      pooled->busy = true;
      pooled->has_oracle = false;
    }
    pooled->task->CloseOracle();
    absl::MutexLock lock(&mutex_);
    Settle(pooled);
  }
}

}  // namespace warpsmith
