#include "core/kernels/thread_pool.h"

#include <atomic>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("every task runs exactly once, with a worker index below the number of threads") {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const int64_t num_tasks : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> runs(num_tasks);
      std::atomic<bool> in_range{true};
      pool.Run(num_tasks, [&](int64_t i, int worker) {
        ++runs[i];
        if (worker < 0 || worker >= threads) in_range = false;
      });
      for (const auto& count : runs) CHECK(count == 1);
      CHECK(in_range);
    }
  }
}

TEST_CASE("what one loop wrote the next one reads, thousands of times in a row") {
  ThreadPool pool(3);
  std::vector<int64_t> values(7);
  for (int round = 0; round < 20000; ++round) {
    pool.Run(7, [&](int64_t i, int) { ++values[i]; });
  }
  for (const int64_t value : values) CHECK(value == 20000);
}

TEST_CASE("a worker's scratch memory is its own while a task runs") {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<bool> shared{false};
  pool.Run(500, [&](int64_t, int worker) {
    if (inside[worker].fetch_add(1) != 0) shared = true;
    inside[worker].fetch_sub(1);
  });
  CHECK_FALSE(shared);
}

TEST_CASE("without a pool the caller does everything in order") {
  std::vector<int64_t> order;
  ParallelFor(nullptr, 4, [&](int64_t i, int worker) { order.push_back(10 * worker + i); });
  CHECK(order == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(NumThreads(nullptr) == 1);
}

}  // namespace
}  // namespace warpsmith
