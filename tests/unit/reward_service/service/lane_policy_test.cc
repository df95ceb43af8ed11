#include "reward_service/service/lane_policy.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr LanePolicyOptions kOptions{.run_length_max = 3, .wait_max = absl::Seconds(10)};

WaitingWork Work(const char* task, int waited_seconds = 1) { return {task, absl::Seconds(waited_seconds)}; }

TEST_CASE("a lane that has done nothing takes the first") {
  CHECK(PickNext({Work("a"), Work("b")}, {}, kOptions) == 0);
}

TEST_CASE("candidates of the recent task go first") {
  CHECK(PickNext({Work("a"), Work("b"), Work("b")}, {"b", 1}, kOptions) == 1);
}

TEST_CASE("without a candidate of the recent task the first goes") {
  CHECK(PickNext({Work("a"), Work("b")}, {"c", 1}, kOptions) == 0);
}

TEST_CASE("a long run gives way to another task, if there is one") {
  CHECK(PickNext({Work("a"), Work("a"), Work("b")}, {"a", 3}, kOptions) == 2);
  CHECK(PickNext({Work("a"), Work("a")}, {"a", 3}, kOptions) == 0);
}

TEST_CASE("nobody waits longer than the limit behind others") {
  CHECK(PickNext({Work("a", 10), Work("b"), Work("b")}, {"b", 1}, kOptions) == 0);
}

TEST_CASE("every candidate is served within its bound, whatever arrives") {
  // Task "hot" never runs dry; the one of "cold" must still be served after at most run_length_max others.
  RecentWork recent{"hot", 1};
  int num_before = 0;
  while (true) {
    const std::vector<WaitingWork> waiting = {Work("cold", num_before), Work("hot", 0), Work("hot", 0)};
    const size_t next = PickNext(waiting, recent, kOptions);
    recent = AfterWork(recent, waiting[next].task_key);
    if (next == 0) break;
    REQUIRE(++num_before < kOptions.run_length_max + 1);
  }
  CHECK(recent.task_key == "cold");
}

TEST_CASE("runs are counted by task") {
  RecentWork recent = AfterWork({}, "a");
  CHECK(recent.run_length == 1);
  recent = AfterWork(recent, "a");
  CHECK(recent.run_length == 2);
  recent = AfterWork(recent, "b");
  CHECK(recent.run_length == 1);
  CHECK(recent.task_key == "b");
}

}  // namespace
}  // namespace warpsmith
