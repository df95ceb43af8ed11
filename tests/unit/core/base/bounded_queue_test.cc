#include "core/base/bounded_queue.h"

#include <thread>
#include <vector>

#include "tests/support/catch.h"

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

}  // namespace warpsmith
