#include "reward_service/grading/waiting/lane_policy.h"

#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr LanePolicyOptions kOptions;

WaitingWork Work(const char* task, int waited_seconds = 1) { return {task, absl::Seconds(waited_seconds)}; }

WaitingWork WorkOf(const char* tenant, int priority = 0, int waited_seconds = 1) {
  return {"task", absl::Seconds(waited_seconds), tenant, priority};
}

size_t PickNext(const std::vector<WaitingWork>& waiting, const RecentWork& recent,
                const LanePolicyOptions& options) {
  return PickNext(waiting, recent, TenantClock(), options).value();
}

TEST_CASE("a lane that has done nothing takes the first") {
  CHECK(PickNext({Work("a"), Work("b")}, {}, kOptions) == 0);
}

TEST_CASE("candidates of the recent task go first") {
  CHECK(PickNext({Work("a"), Work("b"), Work("b")}, {"b"}, kOptions) == 1);
}

TEST_CASE("a task that is being judged is left for later, however long it waits, where there is another") {
  WaitingWork judged = Work("a", 20), other = Work("b");
  judged.task_is_judged = true;
  CHECK(PickNext({judged, other}, {"a"}, kOptions) == 1);
  other.task_is_judged = true;
  CHECK(PickNext({judged, other}, {}, kOptions) == 0);
}

TEST_CASE("a task that another lane has ready is left to it, however long it waits, where there is another") {
  WaitingWork elsewhere = Work("a", 20), judged = Work("b");
  elsewhere.task_place = TaskPlace::kElsewhere;
  judged.task_is_judged = true;
  CHECK(PickNext({elsewhere, judged}, {"a"}, kOptions) == 1);
  CHECK(PickNext({elsewhere, judged, Work("c")}, {"a"}, kOptions) == 2);
  judged.task_place = TaskPlace::kElsewhere;
  CHECK(PickNext({judged, elsewhere}, {}, kOptions) == 1);
}

TEST_CASE("what another lane has ready is not there for this one until it has waited, whoever wants it") {
  WaitingWork theirs = WorkOf("served less", /*priority=*/5, /*waited_seconds=*/1);
  theirs.task_place = TaskPlace::kElsewhere;
  TenantClock clock;
  clock.Charge("served more", 1, absl::Seconds(100));
  const auto pick = [&](const std::vector<WaitingWork>& waiting, int left_seconds_max) {
    return PickNext(waiting, {}, clock, kOptions, absl::Seconds(left_seconds_max));
  };
  CHECK_FALSE(pick({theirs, theirs}, 10).has_value());
  CHECK(pick({theirs, WorkOf("served more")}, 10) == 1);
  CHECK(pick({theirs, WorkOf("served less")}, 10) == 1);
  CHECK(pick({theirs, WorkOf("served more")}, 1) == 0);
  theirs.waited = absl::Seconds(10);
  CHECK(pick({theirs, WorkOf("served more")}, 10) == 0);
}

TEST_CASE("without a candidate of the recent task the first goes") {
  CHECK(PickNext({Work("a"), Work("b")}, {"c"}, kOptions) == 0);
}

TEST_CASE("a task that is judged here goes before one that is not begun, the recent one first") {
  WaitingWork here = Work("b");
  here.task_place = TaskPlace::kHere;
  CHECK(PickNext({Work("a"), here}, {}, kOptions) == 1);
  CHECK(PickNext({Work("a"), here, Work("c")}, {"a"}, kOptions) == 1);
  WaitingWork recent = Work("c");
  recent.task_place = TaskPlace::kHere;
  CHECK(PickNext({Work("a"), here, recent}, {"c"}, kOptions) == 2);
}

TEST_CASE("what came late comes behind what may go") {
  WaitingWork late = Work("b");
  late.came_late = true;
  CHECK(PickNext({Work("a"), late}, {"b"}, kOptions) == 0);
  CHECK(PickNext({Work("a"), Work("b"), late}, {"b"}, kOptions) == 1);
  WaitingWork judged = Work("a");
  judged.task_is_judged = true;
  CHECK(PickNext({judged, late, Work("c")}, {"b"}, kOptions) == 2);
  CHECK(PickNext({judged, late}, {}, kOptions) == 1);
}

TEST_CASE("the tenant that was served least goes next, unless the recent one is hardly ahead") {
  TenantClock clock;
  clock.Charge("busy", 1, absl::Seconds(10));
  clock.Charge("idle", 1, absl::Seconds(3));
  const std::vector<WaitingWork> waiting = {WorkOf("busy"), WorkOf("idle")};
  CHECK(PickNext(waiting, {}, clock, kOptions) == 1);
  CHECK(PickNext(waiting, {"task", "busy"}, clock, kOptions) == 1);
  clock.Charge("idle", 1, absl::Seconds(6));
  CHECK(PickNext(waiting, {"task", "busy"}, clock, kOptions) == 0);
}

TEST_CASE("tenants are served by their shares, however much each sends, and a flood delays nobody for long") {
  TenantClock clock;
  RecentWork recent;
  std::map<std::string, int> served;
  const std::map<std::string, double> shares = {{"small", 1}, {"large", 3}};
  for (int i = 0; i < 400; ++i) {
    // The small one has nine requests waiting for each of the large one's, and they waited longer.
    std::vector<WaitingWork> waiting(9, WorkOf("small", 0, 1000));
    waiting.push_back(WorkOf("large"));
    const size_t next = PickNext(waiting, recent, clock, kOptions).value();
    const std::string tenant(waiting[next].tenant);
    recent = {"task", tenant};
    clock.Charge(tenant, shares.at(tenant), absl::Seconds(1));
    ++served[tenant];
  }
  CHECK(served["large"] == Approx(300).margin(10));
  CHECK(served["small"] == Approx(100).margin(10));
}

TEST_CASE("a tenant that comes back from idleness has no claim on the time that it missed") {
  TenantClock clock;
  clock.Charge("steady", 1, absl::Seconds(1000));
  clock.Enter("late", {"steady"});
  CHECK(clock.SecondsOf("late") == 1000);
  clock.Enter("steady", {"late"});
  CHECK(clock.SecondsOf("steady") == 1000);
}

TEST_CASE(
    "of one tenant's requests the highest priority goes first, and a low one after a minute at the latest") {
  CHECK(PickNext({WorkOf("a", 1), WorkOf("a", 3), WorkOf("a", 2)}, {}, kOptions) == 1);
  CHECK(PickNext({WorkOf("a", 1, 61), WorkOf("a", 3)}, {}, kOptions) == 0);
  CHECK(PickNext({WorkOf("a", 3), WorkOf("b", 1)}, {}, kOptions) == 0);
}

}  // namespace
}  // namespace warpsmith
