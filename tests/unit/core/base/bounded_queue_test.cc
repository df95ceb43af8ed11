#include "core/base/bounded_queue.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/run_together.h"

namespace warpsmith {

TEST_CASE("a full queue refuses and keeps the item with its owner") {
  BoundedQueue<std::vector<int>> queue(1);
  CHECK(queue.TryPush({1}));
  std::vector<int> item = {2};
  CHECK_FALSE(queue.TryPush(std::move(item)));
  CHECK(item == std::vector<int>{2});
}

TEST_CASE("a closed queue hands out what is left, then nothing") {
  BoundedQueue<int> queue(4);
  queue.TryPush(1);
  queue.Close();
  CHECK_FALSE(queue.TryPush(2));
  CHECK(queue.Pop(absl::Seconds(1)) == 1);
  CHECK(queue.Finished());
  CHECK_FALSE(queue.Pop(absl::Seconds(1)).has_value());
}

TEST_CASE("closing wakes a waiting consumer") {
  BoundedQueue<int> queue(1);
  std::thread closer([&] { queue.Close(); });
  CHECK_FALSE(queue.Pop(absl::Seconds(60)).has_value());
  closer.join();
}

TEST_CASE("what many producers push, many consumers get, each item once") {
  constexpr int kNumItems = 4000;
  BoundedQueue<int> queue(8);
  std::vector<std::atomic<int>> num_taken(kNumItems);
  std::atomic<int> next{0}, num_producers{3};
  RunTogether(6, [&](int thread) {
    if (thread >= 3) {
      while (const std::optional<int> item = queue.Pop(absl::InfiniteDuration())) ++num_taken[*item];
      return;
    }
    for (int i = next++; i < kNumItems; i = next++) {
      while (!queue.Push(int{i}, absl::Milliseconds(1))) continue;
    }
    if (--num_producers == 0) queue.Close();
  });
  int num_once = 0;
  for (const std::atomic<int>& count : num_taken) num_once += count == 1;
  CHECK(num_once == kNumItems);
  CHECK(queue.Finished());
}

}  // namespace warpsmith
