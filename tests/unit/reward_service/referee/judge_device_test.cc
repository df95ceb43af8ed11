// Judgements on a fake device: whose fault is what, and what the device adds.
#include <functional>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/unit/reward_service/referee/fake_bench.h"

namespace warpsmith {
namespace {

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
  CHECK(grade.timing().library_share() == 0);
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

TEST_CASE("what a room's first program waits for is off its clock, on cores and beside other candidates") {
  DeviceTurn turn;
  for (DeviceTurn* const device : {static_cast<DeviceTurn*>(nullptr), &turn}) {
    FakeBench bench;
    bench.machine.turn = device;
    bench.machine.opening = absl::Seconds(0.3);
    bench.request.limits.lane_seconds_max = 0.2;
    bench.request.verify_only = true;
    const v1::Grade grade = bench.Run();
    CHECK(grade.verdict() == v1::VERDICT_CORRECT);
    CHECK(grade.cost().lane_wait_seconds() >= 0.3);
  }
}

TEST_CASE("who is to be verified only is not timed") {
  FakeBench bench;
  bench.request.verify_only = true;
  bench.machine.sealed.timed_calls = [](int) { return CallResult{0, Crash()}; };
  const v1::Grade grade = bench.Run();
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.timing().candidate().num_calls() == 0);
  CHECK(grade.timing().libraries_withheld());
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

TEST_CASE("what is right on a device where something failed that no call told is no verdict") {
  FakeBench bench;
  bench.machine.failure = absl::InternalError("cuCtxSynchronize: CUDA_ERROR_LAUNCH_FAILED (719)");
  const auto measurement = bench.TryRun();
  CHECK(absl::IsUnavailable(measurement.status()));
  CHECK_THAT(std::string(measurement.status().message()), Catch::Contains("the device is broken: cuCtxSync"));
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

TEST_CASE("the room where a candidate is right says which libraries ran, timed or verified only") {
  const nlohmann::json script = {{"loaded", {{"product_share", 0.4}}}};
  for (const bool verify_only : {true, false}) {
    for (const Room room : {Room::kSealed, Room::kProducts, Room::kOpen}) {
      FakeBench bench(script);
      bench.machine.rooms = {room};
      bench.request.verify_only = verify_only;
      const v1::Grade grade = bench.Run();
      CHECK(grade.verdict() == v1::VERDICT_CORRECT);
      const v1::Timing& timing = grade.timing();
      CHECK(timing.libraries_withheld() == (room == Room::kSealed));
      CHECK(timing.products_alone() == (room == Room::kProducts));
      CHECK(timing.library_share() == (room == Room::kSealed ? 0 : room == Room::kProducts ? 0.4 : 1));
      CHECK((timing.candidate().num_calls() == 0) == verify_only);
    }
  }
}

TEST_CASE(
    "a candidate that is right with its own kernels emptied is a hack, and neither timed nor judged on") {
  FakeBench bench;
  bench.machine.rooms = {Room::kSealed, Room::kEmptied, Room::kOpen};
  bench.machine.sealed.calls = FaultAt(0, Withheld());
  const v1::Grade grade = bench.Run();
  CHECK(grade.verdict() == v1::VERDICT_HACK);
  CHECK(grade.hack_family() == "delegated-work");
  CHECK(grade.verdict_reason() == "libraries do the work: it is right with its own kernels emptied");
  CHECK_FALSE(grade.has_timing());
  CHECK(bench.machine.num_started == 2);
}

TEST_CASE("a candidate without kernels of its own is a hack where it is right with libraries") {
  FakeBench bench;
  bench.machine.rooms = {Room::kEmptied};
  bench.machine.sealed.calls = FaultAt(0, Wrong());  // which nobody sees
  const v1::Grade grade = bench.Run();
  CHECK(grade.verdict() == v1::VERDICT_HACK);
  CHECK(grade.hack_family() == "delegated-work");
  CHECK(grade.verdict_reason() == "libraries do the work: it is right with them, and has no code of its own");
  CHECK(bench.machine.num_started == 1);
}

TEST_CASE("any fault with emptied kernels leads on to the open room, and what comes last is its own") {
  const Fault error{v1::VERDICT_RUNTIME_ERROR, "ModuleNotFoundError"};
  for (const Fault& fault : {Wrong(), Crash(), Hang(), Withheld(), error}) {
    FakeBench bench;
    bench.machine.rooms = {Room::kEmptied, Room::kOpen};
    bench.machine.emptied.calls = FaultAt(0, fault);
    const v1::Grade grade = bench.Run();
    CHECK(grade.verdict() == v1::VERDICT_CORRECT);
    CHECK(grade.timing().library_share() == 1);
    CHECK(grade.correctness().num_draws() == 5);  // without those of the first room
    bench.machine.open.calls = FaultAt(0, Wrong());
    CHECK(bench.Run().verdict() == v1::VERDICT_INCORRECT);
    bench.machine.rooms = {Room::kEmptied};
    CHECK(bench.Run().verdict_reason() == fault.reason);
  }
}

TEST_CASE("a candidate is judged in one room after the other until it is right or wrong") {
  FakeBench bench;
  bench.machine.rooms = {Room::kSealed, Room::kProducts, Room::kEmptied, Room::kOpen};
  bench.machine.sealed.calls = FaultAt(0, Withheld());
  CHECK(bench.Run().timing().products_alone());
  CHECK(bench.machine.num_started == 2);
  bench.machine.products.calls = FaultAt(0, Wrong());
  CHECK(bench.Run().verdict() == v1::VERDICT_INCORRECT);
  bench.machine.products.calls = FaultAt(0, Withheld());
  bench.machine.emptied.calls = FaultAt(0, Wrong());
  bench.machine.num_started = 0;
  const v1::Grade grade = bench.Run();
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.timing().library_share() == 1);
  CHECK(bench.machine.num_started == 4);
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
