#include "core/kernels/thread_pool.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/check.h"

namespace warpsmith {
namespace {

// Loops of a step follow one another within microseconds, so a thread that has nothing to do looks again this
// many times (some 20 microseconds) before it sleeps. Longer would steal the core from other processes.
constexpr int kSpins = 2000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// A worker says that it is inside, then looks whether the loop is open; Run closes the loop, then waits until
// no worker is inside. So Run never waits for a worker that has not begun, and no worker reads a task that is gone.
struct ThreadPool::State {
  using Task = absl::FunctionRef<void(int64_t, int)>;

  // What is left of one worker's share of the loop; a cache line of its own.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  // Of the present loop; written while the loop is closed and no worker inside.
  const Task* task = nullptr;
  std::vector<Share> shares;

  std::atomic<bool> open{false};
  std::atomic<int> inside{0};
  std::atomic<uint64_t> generation{0};  // counts loops: what a worker waits for
  std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};

  std::mutex mutex;  // of the two conditions; what they wait for is atomic
  std::condition_variable wake, left;
  std::vector<std::thread> threads;

  void TakeTasks(int worker);
  void Work(int worker);
  void AwaitGeneration(uint64_t seen);
  void AwaitWorkers();
};

// Its own share first: the same worker gets the same rows in loop after loop, so that they stay in its core's
// cache. Then what others have not begun.
void ThreadPool::State::TakeTasks(int worker) {
  const size_t num_shares = shares.size();
  for (size_t i = 0; i < num_shares; ++i) {
    Share& share = shares[(static_cast<size_t>(worker) + i) % num_shares];
    for (int64_t at = share.next.fetch_add(1); at < share.end; at = share.next.fetch_add(1)) {
      (*task)(at, worker);
    }
  }
}

void ThreadPool::State::AwaitGeneration(uint64_t seen) {
  const auto ready = [&] { return generation.load() != seen || stop.load(); };
  for (int i = 0; i < kSpins; ++i) {
    if (ready()) return;
    Pause();
  }
  std::unique_lock lock(mutex);
  sleepers.fetch_add(1);
  wake.wait(lock, ready);
  sleepers.fetch_sub(1);
}

void ThreadPool::State::Work(int worker) {
  uint64_t seen = 0;
  while (!stop.load()) {
    AwaitGeneration(seen);
    seen = generation.load();
    inside.fetch_add(1);
    if (open.load()) TakeTasks(worker);
    if (inside.fetch_sub(1) == 1) {
      std::lock_guard lock(mutex);
      left.notify_one();
    }
  }
}

void ThreadPool::State::AwaitWorkers() {
  for (int i = 0; i < kSpins; ++i) {
    if (inside.load() == 0) return;
    Pause();
  }
  std::unique_lock lock(mutex);
  left.wait(lock, [&] { return inside.load() == 0; });
}

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>()) {
  WS_CHECK(num_threads >= 1) << "num_threads " << num_threads;
  state_->shares = std::vector<State::Share>(static_cast<size_t>(num_threads));
  for (int worker = 1; worker < num_threads; ++worker) {
    state_->threads.emplace_back([state = state_.get(), worker] { state->Work(worker); });
    pthread_setname_np(state_->threads.back().native_handle(), "ws-kernel");
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

int ThreadPool::num_threads() const { return static_cast<int>(state_->threads.size()) + 1; }

void ThreadPool::Run(int64_t num_tasks, absl::FunctionRef<void(int64_t, int)> task) {
  State& state = *state_;
  if (state.threads.empty() || num_tasks <= 1) {
    for (int64_t i = 0; i < num_tasks; ++i) task(i, 0);
    return;
  }
  state.task = &task;
  const auto num_shares = static_cast<int64_t>(state.shares.size());
  for (int64_t i = 0; i < num_shares; ++i) {
    State::Share& share = state.shares[static_cast<size_t>(i)];
    share.next = num_tasks * i / num_shares;
    share.end = num_tasks * (i + 1) / num_shares;
  }
  state.open = true;
  state.generation.fetch_add(1);
  if (state.sleepers.load() > 0) {
    std::lock_guard lock(state.mutex);
    state.wake.notify_all();
  }
  state.TakeTasks(0);
  state.open = false;
  state.AwaitWorkers();
}

void ParallelFor(ThreadPool* pool, int64_t num_tasks, absl::FunctionRef<void(int64_t, int)> task) {
  if (pool != nullptr) {
    pool->Run(num_tasks, task);
  } else {
    for (int64_t i = 0; i < num_tasks; ++i) task(i, 0);
  }
}

int NumThreads(const ThreadPool* pool) { return pool != nullptr ? pool->num_threads() : 1; }

}  // namespace warpsmith
