// Judgements on a fake device: whose fault is what, and what the device adds.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "reward_service/measure/referee.h"
#include "reward_service/referee/judge.h"
#include "tests/support/catch.h"
#include "tests/support/fake_judging_device.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

// Judgements on a fake device, of a task that puppets prepare.
struct FakeBench {
  explicit FakeBench(const nlohmann::json& script = nlohmann::json::object())
      : zygote(StartPuppets(script)),
        pool(PuppetTaskLimits(), zygote.get(), &PuppetLane(), PlacesOf(&machine), 1) {}

  absl::StatusOr<v1::Measurement> TryRun() {
    const JudgeTools tools{&pool, DevicesOf(&machine)};
    return Judge(tools, request, absl::Now() + absl::Seconds(60)).Run();
  }
  v1::Grade Run() {
    const auto measurement = TryRun();
    REQUIRE(measurement.ok());
    CHECK(machine.num_alive == 0);
    return measurement->grade();
  }

  const std::unique_ptr<Zygote> zygote;
  FakeMachine machine;
  TaskPool pool;
  JudgeRequest request = PuppetRequest(CandidateKind::kNative);
};

TEST_CASE("a right candidate is timed, and what the device knows of the timing is added") {
  FakeBench bench;
  v1::Profile launches;
  launches.add_kernels();
  bench.machine.sealed.launches = [&](int) { return launches; };
  const v1::Grade grade = bench.Run();
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.timing().speedup() == Approx(4));
  CHECK(grade.timing().quality() == "fake");
  CHECK(grade.timing().libraries_withheld());
  CHECK_FALSE(grade.timing().parameters_fixed());
  CHECK(grade.profile().bound() == "memory");
  CHECK(grade.profile().kernels_size() == 1);
  CHECK(bench.machine.num_started == 1);
  CHECK(bench.machine.num_health_checks == 0);
}

TEST_CASE("a process that breaks when it tells what it launches keeps its verdict, if not the device") {
  FakeBench bench;
  bench.machine.sealed.launches = [](int) { return absl::UnavailableError("the process is gone"); };
  CHECK(bench.Run().verdict() == v1::VERDICT_CORRECT);
  CHECK(bench.machine.num_health_checks == 1);
  bench.machine.is_broken = true;
  CHECK(bench.TryRun().status() == absl::UnavailableError("the device is broken: it does not add up"));
}

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
  auto oracle = std::make_unique<DeviceTurn::Held>(&turn, DeviceTurn::Kind::kShared, TurnFor::kDrawing);
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
  FakeBench memory;
  memory.machine.lost_beside_others = absl::ResourceExhaustedError("no memory");
  CHECK(judge(&memory).verdict() == v1::VERDICT_CORRECT);
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

TEST_CASE("what is made ready once a task takes no candidate's time, in either attempt") {
  FakeBench bench;
  bench.machine.preparing = absl::Seconds(0.3);
  bench.request.limits.lane_seconds_max = 0.2;
  bench.machine.sealed.timed_calls = [](int) { return CallResult{60, Withheld()}; };
  const v1::Grade grade = bench.Run();
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK_FALSE(grade.timing().libraries_withheld());
  CHECK(grade.cost().lane_wait_seconds() >= 0.3);
  CHECK(grade.cost().time_seconds() < 0.3);
}

TEST_CASE("who is to be verified only is not timed") {
  FakeBench bench;
  bench.request.verify_only = true;
  bench.machine.sealed.timed_calls = [](int) { return CallResult{0, Crash()}; };
  const v1::Grade grade = bench.Run();
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK_FALSE(grade.has_timing());
}

TEST_CASE("a fault is the verdict, wherever it comes, once the device was seen to be healthy") {
  const auto on_load = [](FakeMachine* machine, const Fault& fault) { machine->sealed.start_fault = fault; };
  const auto on_call = [](FakeMachine* machine, const Fault& fault) {
    machine->sealed.calls = FaultAt(1, fault);
  };
  const auto when_timed = [](FakeMachine* machine, const Fault& fault) {
    machine->sealed.timed_calls = [fault](int) { return CallResult{60, fault}; };
  };
  const std::vector<std::function<void(FakeMachine*, const Fault&)>> places = {on_load, on_call, when_timed};
  for (const auto& put : places) {
    for (const Fault& fault : {Wrong(), Crash(), Hang()}) {
      FakeBench bench;
      put(&bench.machine, fault);
      const v1::Grade grade = bench.Run();
      CHECK(grade.verdict() == fault.verdict);
      CHECK(grade.verdict_reason() == fault.reason);
      CHECK_FALSE(grade.has_timing());
      CHECK(bench.machine.num_health_checks == 1);
    }
    // A device that broke is no verdict: the lane ends, whatever the candidate seems to have done.
    FakeBench broken;
    broken.machine.breaks_at_fault = true;
    put(&broken.machine, Wrong());
    CHECK(broken.TryRun().status() == absl::UnavailableError("the device is broken: it does not add up"));
  }
}

TEST_CASE("a reference that fails beside a candidate is the task's fault on a healthy device alone") {
  for (const bool breaks : {false, true}) {
    FakeBench bench;
    bench.machine.breaks_at_fault = breaks;
    bench.machine.reference_calls = [](int) { return CallResult{0, Crash()}; };
    const auto measurement = bench.TryRun();
    CHECK(absl::IsUnavailable(measurement.status()) == breaks);
    if (breaks) continue;
    CHECK(measurement->grade().verdict() == v1::VERDICT_INVALID_TASK);
    CHECK(measurement->grade().verdict_reason() ==
          "the reference fails when it is timed: illegal memory access");
  }
}

TEST_CASE("a reference that fails when it is made ready is the task's fault on a healthy device alone") {
  for (const bool breaks : {false, true}) {
    FakeBench bench;
    bench.machine.breaks_at_fault = breaks;
    bench.machine.reference_fault = Crash();
    const auto measurement = bench.TryRun();
    CHECK(absl::IsUnavailable(measurement.status()) == breaks);
    if (!breaks) CHECK(measurement->grade().verdict() == v1::VERDICT_INVALID_TASK);
  }
}

TEST_CASE("a lost device is told as it is, and not asked for its health") {
  FakeBench bench;
  bench.machine.lost = absl::UnavailableError("fell off the bus");
  CHECK(bench.TryRun().status() == bench.machine.lost);
  CHECK(bench.machine.num_health_checks == 0);
  FakeBench later;
  later.machine.sealed.calls = [&](const Draw&, int) {
    later.machine.lost = absl::UnavailableError("fell off the bus");
    return std::nullopt;
  };
  CHECK(later.TryRun().status() == later.machine.lost);
}

TEST_CASE("want of a library opens the room once, also when it shows as late as in the timing") {
  const auto judge = [](FakeBench* bench) {
    const v1::Grade grade = bench->Run();
    CHECK(bench->machine.num_started == 2);
    CHECK_FALSE(grade.timing().libraries_withheld());
    return grade;
  };
  FakeBench early;
  early.machine.sealed.calls = FaultAt(2, Withheld());
  const v1::Grade grade = judge(&early);
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.correctness().num_draws() == 5);  // without the three of the first attempt
  CHECK(grade.has_timing());
  CHECK(early.machine.num_health_checks == 0);
  FakeBench late;
  late.machine.sealed.timed_calls = [](int) { return CallResult{60, Withheld()}; };
  CHECK(judge(&late).verdict() == v1::VERDICT_CORRECT);
  FakeBench wrong;
  wrong.machine.sealed.calls = FaultAt(0, Withheld());
  wrong.machine.open.calls = FaultAt(0, Wrong());
  CHECK(judge(&wrong).verdict() == v1::VERDICT_INCORRECT);
  FakeBench always;
  always.machine.sealed.calls = FaultAt(0, Withheld());
  always.machine.open.calls = FaultAt(0, Withheld());
  CHECK(judge(&always).verdict_reason() == "used a withheld library");
}

TEST_CASE("an error where libraries are withheld is judged once more, where the device says so") {
  const Fault error{v1::VERDICT_RUNTIME_ERROR, "ModuleNotFoundError"};
  FakeBench bench;
  bench.machine.sealed.calls = FaultAt(0, error);
  CHECK(bench.Run().verdict() == v1::VERDICT_RUNTIME_ERROR);
  bench.machine.judges_errors_again = true;
  const v1::Grade grade = bench.Run();
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK_FALSE(grade.timing().libraries_withheld());
  bench.machine.sealed.calls = FaultAt(0, Wrong());
  CHECK(bench.Run().verdict() == v1::VERDICT_INCORRECT);
}

TEST_CASE("a candidate that takes no parameters is timed with one warm-up: its input sets are few") {
  const nlohmann::json weight = {{{"code", 2}, {"bits", 32}, {"shape", {4}}, {"name", "weight"}}};
  const nlohmann::json script = {{"loaded", {{"parameters", weight}}}};
  FakeBench bench(script);
  bench.machine.timing.num_warm_ups = 2;
  bench.machine.sealed.takes_parameters = false;
  const v1::Grade grade = bench.Run();
  CHECK(grade.verdict_reason() == "right on all 3 draws");
  REQUIRE(grade.has_timing());  // they are three, and a round takes two
  CHECK(grade.timing().parameters_fixed());
}

TEST_CASE("a device that does not open is told as it is") {
  FakeBench bench;
  const JudgeTools tools{&bench.pool, [](const Judgement&) { return absl::InternalError("no device"); }};
  CHECK(Judge(tools, bench.request, absl::Now() + absl::Seconds(60)).Run().status() ==
        absl::InternalError("no device"));
}

}  // namespace
}  // namespace warpsmith
