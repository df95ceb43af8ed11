#include "reward_service/referee/judge.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "reward_service/measure/referee.h"
#include "reward_service/referee/cpu_device.h"
#include "tests/support/catch.h"
#include "tests/support/fake_judging_device.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

constexpr CandidateKind kNative = CandidateKind::kNative;
constexpr CandidateKind kPython = CandidateKind::kKernelBenchPython;

std::unique_ptr<EmptyCandidate> StartEmpty(Zygote& zygote) {
  auto empty = EmptyCandidate::Start(zygote, CandidateKind::kNative, ShareDirectory(), PuppetLane());
  WS_CHECK(empty.ok()) << empty.status().ToString();
  return *std::move(empty);
}

// Judgements of puppets on a CPU.
struct Bench {
  explicit Bench(CandidateKind kind, const nlohmann::json& script = nlohmann::json::object())
      : zygote(StartPuppets(script)),
        pool(PuppetTaskLimits(), zygote.get(), &PuppetLane(), PuppetPlace(zygote.get()), 1),
        empty(StartEmpty(*empty_zygote)),
        request(PuppetRequest(kind)) {
    cpu = {.lane = &PuppetLane(),
           .native_zygote = zygote.get(),
           .python_zygote = zygote.get(),
           .empty_native = empty.get(),
           .empty_python = empty.get(),
           .jail_memory_bytes_max = int64_t{1} << 30};
    cpu.facts.empty_call_us = 50;
    cpu.facts.sample_us = 15;
    cpu.facts.gigabytes_per_second_ceiling = 1;
    cpu.facts.nearest_cache_gigabytes_per_second = 100;
    request.verify_only = true;
  }

  absl::StatusOr<v1::Measurement> TryRun(absl::Duration patience = absl::Seconds(60)) {
    const JudgeTools tools{&pool,
                           [this](const Judgement& judgement) { return CpuDevice::Open(cpu, judgement); }};
    return Judge(tools, request, absl::Now() + patience).Run();
  }
  v1::Measurement Run() {
    auto measurement = TryRun();
    REQUIRE(measurement.ok());
    return *std::move(measurement);
  }

  const std::unique_ptr<Zygote> empty_zygote = StartPuppets();
  const std::unique_ptr<Zygote> zygote;
  TaskPool pool;
  const std::unique_ptr<EmptyCandidate> empty;
  CpuTools cpu;
  JudgeRequest request;
};

// A script in which a native candidate's calls end so, in either room.
nlohmann::json OfEachCall(const nlohmann::json& answer) {
  return {{"answers", {{"run native", answer}, {"run native sealed", answer}}}};
}

nlohmann::json EndsForWant() { return {{"op", "crash"}, {"signal", 11}, {"withheld", true}}; }

TEST_CASE("a candidate that is right where no library can work is correct, and told on what") {
  for (const CandidateKind kind : {CandidateKind::kNative, kPython}) {
    const v1::Measurement measurement = Bench(kind, {{"prints", "hello"}}).Run();
    INFO(measurement.grade().verdict_reason());
    CHECK(measurement.grade().verdict() == v1::VERDICT_CORRECT);
    CHECK(measurement.grade().verdict_reason() == "right on all 5 draws");
    CHECK(measurement.output_tail() == "hello");
    CHECK_FALSE(measurement.grade().has_timing());
  }
}

TEST_CASE("a candidate that ends for want of a library is judged once more, from the beginning, with all") {
  const nlohmann::json third = {nullptr, nullptr, EndsForWant()};
  Bench bench(kNative, {{"answers", {{"run native sealed", third}}}});
  bench.request.verify_only = false;
  const v1::Measurement measurement = bench.Run();
  INFO(measurement.grade().verdict_reason());
  CHECK(measurement.grade().verdict() == v1::VERDICT_CORRECT);
  CHECK(measurement.grade().correctness().num_draws() == 5);  // without the two of the first attempt
  REQUIRE(measurement.grade().has_timing());
  CHECK_FALSE(measurement.grade().timing().libraries_withheld());
}

TEST_CASE("a candidate that is wrong without libraries gets no second attempt") {
  const v1::Measurement measurement =
      Bench(kNative, {{"answers", {{"run native sealed", {{"op", "done"}, {"result", 3}}}}}}).Run();
  CHECK(measurement.grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(measurement.grade().verdict_reason() == "run() returned 3");
}

TEST_CASE("one that ends for want of a library where there are all is at fault") {
  const v1::Measurement measurement = Bench(kNative, OfEachCall(EndsForWant())).Run();
  CHECK(measurement.grade().verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(measurement.grade().verdict_reason() == "used a library's code that is withheld here");
}

TEST_CASE("what a fault says of its place is in the judgement") {
  const nlohmann::json behind = {
      {"op", "crash"}, {"signal", 11}, {"buffer", "output"}, {"offset", 20}, {"bytes", 16}};
  CHECK(Bench(kNative, OfEachCall(behind)).Run().advice_facts().out_of_bounds());
  const nlohmann::json input = {
      {"op", "crash"}, {"signal", 11}, {"buffer", "input"}, {"offset", 0}, {"bytes", 16}};
  CHECK(Bench(kNative, OfEachCall(input)).Run().advice_facts().input_mutated());
  const v1::Measurement hack = Bench(kNative, {{"warm", {{"code", nlohmann::json::object()}}}}).Run();
  CHECK(hack.grade().verdict() == v1::VERDICT_HACK);
  CHECK(hack.grade().hack_family() == kWithheldCodeFamily);
}

TEST_CASE("a task at fault is a judgement, not a failure of the machine") {
  const v1::Measurement measurement =
      Bench(kNative, {{"answers", {{"load", {{"op", "failed"}, {"error", "NameError: Model"}}}}}}).Run();
  CHECK(measurement.grade().verdict() == v1::VERDICT_INVALID_TASK);
  CHECK(measurement.grade().verdict_reason() == "NameError: Model");
  // Also where the reference fails when its candidate is right already.
  nlohmann::json runs = {nullptr, nullptr, nullptr, {{"op", "failed"}, {"error", "worn"}}};
  Bench later(kNative, {{"answers", {{"run Model", runs}}}});
  later.request.verify_only = false;
  const v1::Measurement worn = later.Run();
  CHECK(worn.grade().verdict() == v1::VERDICT_INVALID_TASK);
  CHECK(worn.grade().verdict_reason() == "the reference fails when it is timed: worn");
}

TEST_CASE(
    "what the machine fails in is no verdict: a task that is not ready in time, a zygote that has died") {
  Bench unready(kNative);
  CHECK(absl::IsDeadlineExceeded(unready.TryRun(absl::ZeroDuration()).status()));
  Bench dead(kNative);
  const auto dying = StartPuppets({{"answers", {{"hello", "end"}}}});
  dead.cpu.native_zygote = dying.get();
  CHECK(absl::IsUnavailable(dead.TryRun().status()));
}

TEST_CASE("a right candidate is timed beside its reference") {
  for (const CandidateKind kind : {CandidateKind::kNative, kPython}) {
    Bench bench(kind);
    bench.request.verify_only = false;
    const v1::Measurement measurement = bench.Run();
    INFO(measurement.grade().verdict_reason());
    CHECK(measurement.grade().verdict() == v1::VERDICT_CORRECT);
    REQUIRE(measurement.grade().has_timing());
    const v1::Timing& timing = measurement.grade().timing();
    CHECK(timing.candidate().num_instances() >= bench.request.timing.num_instances_min);
    CHECK(timing.libraries_withheld());
    CHECK_FALSE(timing.parameters_fixed());
    CHECK(timing.quality().find("best_effort: ") == 0);
    REQUIRE(measurement.grade().has_profile());
    CHECK(measurement.grade().profile().gigabytes_per_second() > 0);
    CHECK(measurement.grade().profile().gigabytes_per_second_ceiling() == 1);
  }
}

TEST_CASE("a Python candidate that takes no parameters is timed on those of its construction, and told so") {
  const nlohmann::json weight = {{{"code", 2}, {"bits", 32}, {"shape", {4}}, {"name", "weight"}}};
  Bench bench(kPython,
              {{"loaded", {{"parameters", weight}}},
               {"answers", {{"begin ModelNew sealed", {{"op", "ready"}, {"parameters_loaded", false}}}}}});
  bench.request.verify_only = false;
  const v1::Measurement measurement = bench.Run();
  INFO(measurement.grade().verdict_reason());
  REQUIRE(measurement.grade().has_timing());
  CHECK(measurement.grade().timing().parameters_fixed());
}

// The memory of this machine gives a millionth of a byte a second.
TEST_CASE("a call in which no machine like this can write the outputs is a hack") {
  Bench bench(kNative);
  bench.request.verify_only = false;
  bench.cpu.facts.nearest_cache_gigabytes_per_second = 1e-15;
  const v1::Measurement measurement = bench.Run();
  CHECK(measurement.grade().verdict() == v1::VERDICT_HACK);
  CHECK(measurement.grade().hack_family() == kImpossibleTimeFamily);
}

TEST_CASE("both attempts and the timing share one bound of the lane") {
  Bench bench(kNative, {{"answers", {{"run native sealed", EndsForWant()}}}});
  bench.request.limits.lane_seconds_max = 0;
  const v1::Measurement measurement = bench.Run();
  CHECK(measurement.grade().verdict() == v1::VERDICT_TIMEOUT);
}

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
  JudgeRequest request = PuppetRequest(kNative);
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
    "on a device that is one for all nobody runs beside an oracle, and waiting for it is not the "
    "candidate's") {
  FakeBench bench;
  absl::Mutex turn;
  bench.machine.turn = &turn;
  bench.request.limits.lane_seconds_max = 0.2;
  // The oracle makes draws between the judgement's own turns: a lock that is not given up would end in its deadline.
  REQUIRE(bench.Run().verdict() == v1::VERDICT_CORRECT);
  bench.machine.num_started = 0;
  turn.Lock();
  absl::StatusOr<v1::Measurement> measurement = absl::UnknownError("not run");
  std::thread judge([&] { measurement = bench.TryRun(); });
  absl::SleepFor(absl::Seconds(0.5));
  CHECK(bench.machine.num_started == 0);
  turn.Unlock();
  judge.join();
  REQUIRE(measurement.ok());
  CHECK(measurement->grade().verdict() == v1::VERDICT_CORRECT);
  CHECK(measurement->grade().cost().lane_wait_seconds() > 0.2);
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
