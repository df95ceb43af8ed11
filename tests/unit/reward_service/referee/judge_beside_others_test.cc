// Judgements on a fake device that is one for all: what is done beside others, and what of that is done again alone.
#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/held_turn.h"
#include "tests/unit/reward_service/referee/fake_bench.h"

namespace warpsmith {
namespace {

TEST_CASE(
    "on a device that is one for all a candidate is verified beside an oracle, not timed, and waiting for it "
    "is not "
    "its own doing") {
  FakeBench bench;
  DeviceTurn turn;
  bench.machine.turn = &turn;
  bench.request.limits.lane_seconds_max = 0.2;
  // The oracle makes draws between the judgement's own turns: a lock that is not given up would end in its deadline.
  REQUIRE(bench.Run().verdict() == v1::VERDICT_CORRECT);
  bench.machine.num_started = 0;
  std::atomic<int> num_timed = 0;
  bench.machine.sealed.timed_calls = [&](int) {
    ++num_timed;
    return CallResult{60};
  };
  auto oracle = HoldTurn(&turn, DeviceTurn::Kind::kShared);
  absl::StatusOr<v1::Measurement> measurement = absl::UnknownError("not run");
  std::thread judge([&] { measurement = bench.TryRun(); });
  absl::SleepFor(absl::Seconds(0.5));
  CHECK(bench.machine.num_started == 1);
  CHECK(num_timed == 0);
  oracle.reset();
  judge.join();
  REQUIRE(measurement.ok());
  CHECK(measurement->grade().verdict() == v1::VERDICT_CORRECT);
  CHECK(measurement->grade().cost().lane_wait_seconds() > 0.2);
}

TEST_CASE("what fails beside others, and may be their doing, is seen again alone; what is certain is not") {
  DeviceTurn turn;
  const auto judge = [&](FakeBench* bench) {
    bench->machine.turn = &turn;
    return bench->Run();
  };
  // In its first process, which others may have left no memory.
  FakeBench scarce;
  scarce.machine.sealed.calls = [&](const Draw&, int) {
    return turn.is_shared() ? std::optional(Crash()) : std::nullopt;
  };
  CHECK(judge(&scarce).verdict() == v1::VERDICT_CORRECT);
  CHECK(scarce.machine.num_started == 2);
  FakeBench certain;
  certain.machine.may_be_others_doing = false;
  certain.machine.sealed.calls = FaultAt(0, Crash());
  CHECK(judge(&certain).verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(certain.machine.num_started == 1);
  // Once alone it stays so, in the open room too.
  FakeBench open;
  open.machine.judges_errors_again = true;
  open.machine.sealed.calls = FaultAt(0, Crash());
  open.machine.open.calls = [&](const Draw&, int) {
    return turn.is_shared() ? std::optional(Wrong()) : std::nullopt;
  };
  CHECK(judge(&open).verdict() == v1::VERDICT_CORRECT);
  CHECK(open.machine.num_started == 3);
}

TEST_CASE("a process that does not start beside others is started alone before the referee gives up") {
  DeviceTurn turn;
  for (const absl::Status& lost :
       {absl::ResourceExhaustedError("no memory"), absl::InternalError("no context"),
        absl::UnavailableError("process 7 has ended")}) {
    FakeBench bench;
    bench.machine.turn = &turn;
    bench.machine.lost_beside_others = lost;
    CHECK(bench.Run().verdict() == v1::VERDICT_CORRECT);
    bench.machine.lost = lost;
    CHECK(bench.TryRun().status() == lost);
  }
  FakeBench reference;
  reference.machine.turn = &turn;
  reference.machine.prepare_reference = [&]() -> absl::Status {
    return turn.is_shared() ? absl::InternalError("no context") : absl::OkStatus();
  };
  CHECK(reference.Run().verdict() == v1::VERDICT_CORRECT);
  // Time does not come back.
  FakeBench late;
  late.machine.turn = &turn;
  late.machine.lost_beside_others = absl::DeadlineExceededError("late");
  CHECK(absl::IsDeadlineExceeded(late.TryRun().status()));
}

TEST_CASE("a process that does not end ends the referee") {
  DeviceTurn turn;
  FakeBench bench;
  bench.machine.turn = &turn;
  bench.machine.kept_end = absl::UnavailableError("process 7 was killed and does not end");
  CHECK(bench.TryRun().status() == bench.machine.kept_end);
}

TEST_CASE("what a candidate takes beside others is not on the clock of its timing") {
  FakeBench bench;
  DeviceTurn turn;
  bench.machine.turn = &turn;
  bench.request.limits.lane_seconds_max = 0.5;
  bench.machine.sealed.calls = [&](const Draw&, int) -> std::optional<Fault> {
    absl::SleepFor(absl::Milliseconds(70));
    return std::nullopt;
  };
  const absl::Time begin = absl::Now();
  REQUIRE(bench.Run().verdict() == v1::VERDICT_CORRECT);
  CHECK(bench.machine.timed_since - begin > absl::Milliseconds(300));
}

TEST_CASE("a turn that does not come by the deadline is no verdict") {
  FakeBench bench;
  DeviceTurn turn;
  bench.machine.turn = &turn;
  REQUIRE(bench.Run().verdict() == v1::VERDICT_CORRECT);
  const auto other = HoldTurn(&turn, DeviceTurn::Kind::kShared);
  const JudgeTools tools{&bench.pool, DevicesOf(&bench.machine)};
  const auto late = Judge(tools, bench.request, absl::Now() + absl::Seconds(1)).Run();
  CHECK(absl::IsDeadlineExceeded(late.status()));
}

TEST_CASE(
    "what a judgement leaves on a device is freed beside nobody who is timed, and it does not wait for "
    "that") {
  FakeBench bench;
  DeviceTurn turn;
  bench.machine.turn = &turn;
  REQUIRE(bench.Run().verdict() == v1::VERDICT_CORRECT);
  absl::SleepFor(absl::Milliseconds(200));
  std::weak_ptr<const void> draws;  // their task counts them by this
  bench.machine.sealed.calls = [&](const Draw& draw, int) -> std::optional<Fault> {
    draws = draw.counted;
    return std::nullopt;
  };
  // Another one is timed as soon as this one has been.
  std::unique_ptr<DeviceTurn::Held> other;
  std::thread next;
  bench.machine.sealed.launches = [&](int) -> absl::StatusOr<v1::Profile> {
    bench.machine.num_kept = 0;  // they have ended: for no other end a turn is waited for
    if (!next.joinable()) next = std::thread([&] { other = HoldTurn(&turn, DeviceTurn::Kind::kAlone); });
    absl::SleepFor(absl::Milliseconds(50));
    return v1::Profile();
  };
  CHECK(bench.Run().verdict() == v1::VERDICT_CORRECT);
  next.join();
  absl::SleepFor(absl::Milliseconds(200));
  const auto num_draws = draws.use_count();
  other.reset();
  absl::SleepFor(absl::Milliseconds(200));
  CHECK(draws.use_count() < num_draws);
}

TEST_CASE("a candidate that hangs beside others keeps them for some seconds alone") {
  FakeBench bench;
  DeviceTurn turn;
  bench.machine.turn = &turn;
  bench.request.limits.lane_seconds_max = 60;
  bench.machine.sealed.calls = [&](const Draw&, int) -> std::optional<Fault> {
    if (turn.is_shared()) absl::SleepFor(absl::Seconds(0.7 * kBesideOthersSecondsMax));
    return std::nullopt;
  };
  const absl::Time start = absl::Now();
  CHECK(bench.Run().verdict() == v1::VERDICT_CORRECT);
  CHECK(absl::Now() - start < absl::Seconds(2 * kBesideOthersSecondsMax));
  CHECK(bench.machine.num_started == 2);
}

TEST_CASE("a reference that fails when it is made ready beside others is seen again alone") {
  FakeBench bench;
  DeviceTurn turn;
  bench.machine.turn = &turn;
  int num_alone = 0;
  bench.machine.prepare_reference = [&]() -> absl::Status {
    num_alone += turn.is_shared() ? 0 : 1;
    return turn.is_shared() ? absl::InvalidArgumentError("no memory") : absl::OkStatus();
  };
  CHECK(bench.Run().verdict() == v1::VERDICT_CORRECT);
  CHECK(num_alone == 1);
  bench.machine.prepare_reference = [] { return absl::InvalidArgumentError("it fails"); };
  CHECK(bench.Run().verdict() == v1::VERDICT_INVALID_TASK);
}

TEST_CASE("a reference that fails when it is timed ends: what it answers late is read by nobody") {
  DeviceTurn turn;
  for (DeviceTurn* const shared : {static_cast<DeviceTurn*>(nullptr), &turn}) {
    FakeBench bench;
    bench.machine.turn = shared;
    bench.machine.reference_calls = [](int call) {
      return call < 3 ? CallResult{210} : CallResult{0, Fault{v1::VERDICT_TIMEOUT, "no result after 30 s"}};
    };
    CHECK(bench.Run().verdict() == v1::VERDICT_INVALID_TASK);
    CHECK(bench.machine.num_references_ended == 1);
  }
}

TEST_CASE("the lane is held by whoever has the device alone, and left with it") {
  FakeBench bench;
  DeviceTurn turn;
  bench.machine.turn = &turn;
  bench.machine.sealed.calls = [&](const Draw&, int) {
    CHECK_FALSE(bench.machine.holds_lane);
    return std::nullopt;
  };
  bench.machine.sealed.timed_calls = [&](int) {
    CHECK(bench.machine.holds_lane);
    return CallResult{60};
  };
  CHECK(bench.Run().verdict() == v1::VERDICT_CORRECT);
  CHECK_FALSE(bench.machine.holds_lane);
}

TEST_CASE("nobody is timed beside what a reference has left on the device: its oracle ends first") {
  FakeBench bench;
  DeviceTurn turn;
  bench.machine.turn = &turn;
  REQUIRE(bench.Run().verdict() == v1::VERDICT_CORRECT);
  int num_looks = 0;
  bench.machine.idle = [&]() -> absl::Status {
    return num_looks++ == 0 ? absl::DeadlineExceededError("busy") : absl::OkStatus();
  };
  bench.machine.num_started = 0;
  CHECK(bench.Run().verdict() == v1::VERDICT_CORRECT);
  CHECK(bench.machine.num_started == 1);
  CHECK(num_looks == 2);
}

TEST_CASE("nobody is timed where a device does not come to rest, whose oracles have ended") {
  FakeBench bench;
  DeviceTurn turn;
  bench.machine.turn = &turn;
  bench.machine.idle = [] { return absl::DeadlineExceededError("busy"); };
  bench.machine.sealed.timed_calls = [](int) { return CallResult{60, Crash()}; };
  CHECK(bench.TryRun().status() == absl::UnavailableError("the device cannot be used: busy"));
}

TEST_CASE("what a reference leaves on the device beside a candidate that is wrong breaks no device") {
  DeviceTurn turn;
  FakeBench bench;
  bench.machine.turn = &turn;
  bench.machine.sealed.timed_calls = [](int) { return CallResult{60, Crash()}; };
  // Idle before it is timed, and busy afterwards until all references have ended.
  int num_looks = 0;
  bench.machine.idle = [&]() -> absl::Status {
    return ++num_looks > 1 && bench.machine.num_references_ended == 0 ? absl::DeadlineExceededError("busy")
                                                                      : absl::OkStatus();
  };
  CHECK(bench.Run().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(bench.machine.num_references_ended > 0);
}

TEST_CASE("processes to be timed are made ready beside others, and end beside others") {
  FakeBench bench;
  DeviceTurn turn;
  bench.machine.turn = &turn;
  bench.request.timing.num_instances_min = 2;
  int num_asked = 0;
  bench.machine.prepare_candidates = [&](int num) {
    num_asked += num;
    CHECK(turn.is_shared());
    return std::nullopt;
  };
  bench.machine.sealed.timed_calls = [&](int) {
    CHECK(bench.machine.num_kept == 2);
    CHECK_FALSE(turn.is_shared());
    return CallResult{60};
  };
  CHECK(bench.Run().verdict() == v1::VERDICT_CORRECT);
  CHECK(num_asked == 2);
  CHECK(bench.machine.num_kept == 0);
  CHECK(bench.machine.num_ended == 2);
}

TEST_CASE(
    "a process that was verified is timed, too, where it has not seen what counts and a fresh one follows") {
  DeviceTurn turn;
  const auto num_kept = [&](auto change, const nlohmann::json& script = nlohmann::json::object()) {
    FakeBench bench(script);
    bench.machine.turn = &turn;
    bench.request.timing.num_instances_min = 2;
    change(&bench);
    (void)bench.Run();
    return bench.machine.num_verified_kept;
  };
  CHECK(num_kept([](FakeBench*) {}) == 1);
  CHECK(num_kept([](FakeBench* bench) { bench->request.timing.num_instances_min = 1; }) == 0);
  CHECK(num_kept([](FakeBench* bench) { bench->request.verify_only = true; }) == 0);
  CHECK(num_kept([](FakeBench* bench) { bench->machine.sealed.takes_parameters = false; }) == 0);
  CHECK(num_kept([](FakeBench* bench) { bench->machine.sealed.calls = FaultAt(1, Wrong()); }) == 0);
  // Of the room in which it was right.
  CHECK(num_kept([](FakeBench* bench) {
          bench->machine.may_be_others_doing = false;
          bench->machine.sealed.calls = FaultAt(1, Withheld());
        }) == 1);
  // A task without other styles has other draws for timing.
  const nlohmann::json refused = {{"op", "unusable"}};
  CHECK(num_kept([](FakeBench*) {}, {{"answers", {{"draw large", refused}, {"draw small", refused}}}}) == 1);
}

TEST_CASE(
    "a process that fails when it is made ready is the candidate's fault, unless it may be others' doing") {
  DeviceTurn turn;
  for (const bool may_be_others : {false, true}) {
    FakeBench bench;
    bench.machine.turn = &turn;
    bench.machine.may_be_others_doing = may_be_others;
    bench.machine.prepare_candidates = [](int) { return Crash(); };
    const v1::Grade grade = bench.Run();
    CHECK(grade.verdict() == (may_be_others ? v1::VERDICT_CORRECT : v1::VERDICT_RUNTIME_ERROR));
    CHECK(grade.has_timing() == may_be_others);
  }
}

TEST_CASE("a fault with emptied kernels beside others is not seen again alone where another room follows") {
  FakeBench bench;
  DeviceTurn turn;
  int num_alone = 0;
  bench.machine.turn = &turn;
  bench.machine.rooms = {Room::kEmptied, Room::kOpen};
  bench.machine.emptied.calls = [&](const Draw&, int) {
    num_alone += turn.is_shared() ? 0 : 1;
    return Crash();
  };
  CHECK(bench.Run().verdict() == v1::VERDICT_CORRECT);
  CHECK(num_alone == 0);
  CHECK(bench.machine.num_started == 2);
  bench.machine.rooms = {Room::kEmptied};  // where the fault is a verdict
  CHECK(bench.Run().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(num_alone == 1);
}

TEST_CASE("processes of the sealed room are not timed in the open one") {
  FakeBench bench;
  DeviceTurn turn;
  bench.machine.turn = &turn;
  bench.machine.sealed.timed_calls = [](int) { return CallResult{60, Withheld()}; };
  bench.machine.prepare_candidates = [&](int) {
    CHECK(bench.machine.num_kept == 0);
    return std::nullopt;
  };
  CHECK(bench.Run().verdict() == v1::VERDICT_CORRECT);
}

}  // namespace
}  // namespace warpsmith
