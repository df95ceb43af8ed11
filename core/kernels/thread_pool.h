// A few threads that split loops. Made for one owner and kernels of microseconds to milliseconds.
#ifndef WARPSMITH_CORE_KERNELS_THREAD_POOL_H_
#define WARPSMITH_CORE_KERNELS_THREAD_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace warpsmith {

// Owned by main, named "ws-kernel". Tasks are taken from a shared counter, so a thread that another process
// holds up does not hold up the rest for longer than its own task. Not to be used from two threads at once,
// nor from within a task.
class ThreadPool {
 public:
  // `num_threads` counts the caller of Run: 1 starts no thread. At least 1.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  // Calls task(i, worker) for every i in [0, num_tasks), the caller taking part as worker 0, and returns when
  // all are done. `worker` is below num_threads() and belongs to one thread at a time: an index for scratch
  // memory.
  void Run(int64_t num_tasks, absl::FunctionRef<void(int64_t i, int worker)> task);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// pool->Run, or a plain loop where pool is null.
void ParallelFor(ThreadPool* pool, int64_t num_tasks, absl::FunctionRef<void(int64_t i, int worker)> task);

// 1 where pool is null.
int NumThreads(const ThreadPool* pool);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_THREAD_POOL_H_
