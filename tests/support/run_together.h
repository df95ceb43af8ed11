// Threads that begin at the same moment.
#ifndef WARPSMITH_TESTS_SUPPORT_RUN_TOGETHER_H_
#define WARPSMITH_TESTS_SUPPORT_RUN_TOGETHER_H_

#include <functional>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"

namespace warpsmith {

// Calls work(i) for each i in [0, num_threads), on a thread each, and returns when all have returned. Catch's
// assertions are for the test's own thread: count in `work`, and check afterwards.
inline void RunTogether(int num_threads, const std::function<void(int)>& work) {
  absl::Notification go;
  std::vector<std::thread> threads;
  for (int i = 0; i < num_threads; ++i) {
    threads.emplace_back([&, i] {
      go.WaitForNotification();
      work(i);
    });
  }
  go.Notify();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_RUN_TOGETHER_H_
