#include "reward_service/referee/tensors/few_at_a_time.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("no more than there are places have one at a time, and each has it once") {
  FewAtATime place(2);
  std::atomic<int> num_there = 0, num_wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const FewAtATime::Held held(&place, absl::Seconds(60));
      if (++num_there > 2) ++num_wrong;
      absl::SleepFor(absl::Milliseconds(5));
      --num_there;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_wrong == 0);
}

TEST_CASE("a thread that waits too long goes on without the place, and gives back none") {
  constexpr absl::Duration kWait = absl::Milliseconds(20);
  FewAtATime place(1);
  const FewAtATime::Held first(&place, kWait);
  CHECK(first.waited() < kWait);
  { CHECK(FewAtATime::Held(&place, kWait).waited() >= kWait); }
  CHECK(FewAtATime::Held(&place, kWait).waited() >= kWait);
}

}  // namespace
}  // namespace warpsmith
