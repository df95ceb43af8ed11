// Judgements of puppets on a CPU; those on a fake device are in judge_device_test.cc.
#include "reward_service/referee/judge.h"

#include <memory>
#include <string>

#include "reward_service/measure/referee.h"
#include "reward_service/referee/cpu_device.h"
#include "tests/support/catch.h"
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
  LaneTools cpu;
  JudgeRequest request;
};

// A script in which a native candidate's calls end so, in either room.
nlohmann::json OfEachCall(const nlohmann::json& answer) {
  return {{"answers", {{"run native", answer}, {"run native sealed", answer}}}};
}

nlohmann::json EndsForWant() { return {{"op", "crash"}, {"signal", 11}, {"withheld", true}}; }

TEST_CASE("a candidate that is right where no library can work is correct, and told on what") {
  for (const CandidateKind kind : {CandidateKind::kNative, kPython}) {
    const v1::Measurement measurement = Bench(kind).Run();
    INFO(measurement.grade().verdict_reason());
    CHECK(measurement.grade().verdict() == v1::VERDICT_CORRECT);
    CHECK(measurement.grade().verdict_reason() == "right on all 5 draws");
    CHECK(measurement.grade().timing().candidate().num_calls() == 0);
    CHECK(measurement.grade().timing().libraries_withheld());
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

}  // namespace
}  // namespace warpsmith
