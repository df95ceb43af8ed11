#include "reward_service/referee/verifier.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/fake_judging_device.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

// A verification on a fake device. The script is that of the task.
struct Bench {
  explicit Bench(const nlohmann::json& script = nlohmann::json::object()) : puppets(script) {}

  absl::StatusOr<Verified> TryRun() {
    FakeJudgingDevice device(&machine, &measurement);
    return Verifier(&device, options, &measurement).Run(*puppets.task);
  }
  Verified Run() {
    auto verified = TryRun();
    REQUIRE(verified.ok());
    CHECK(machine.num_alive == (verified->fault ? 0 : 1));  // which may be timed
    verified->program.reset();
    CHECK(machine.num_alive == 0);
    return *std::move(verified);
  }
  int num_draws() const { return measurement.grade().correctness().num_draws(); }
  CandidateScript& candidate() { return machine.in(options.room); }

  PuppetTask puppets;
  FakeMachine machine;
  v1::Measurement measurement;
  VerifierOptions options{
      .room = Room::kOpen, .lane_since = absl::Now(), .lane_seconds_max = 60, .long_call_us = 5000};
};

// A script with these fields of the oracle's description.
nlohmann::json Loaded(const nlohmann::json& fields) { return {{"loaded", fields}}; }

nlohmann::json WithWeight() {
  return Loaded({{"parameters", {{{"code", 2}, {"bits", 32}, {"shape", {4}}, {"name", "weight"}}}}});
}

TEST_CASE("a candidate that is right on every input set has no fault") {
  Bench bench;
  const Verified verified = bench.Run();
  CHECK_FALSE(verified.fault);
  CHECK(verified.takes_parameters);
  CHECK(bench.machine.called_on == std::vector<std::string>{"own", "large", "small", "mixed", "outliers"});
  CHECK(bench.num_draws() == 5);
  CHECK(bench.machine.num_started == 1);
}

TEST_CASE("what the reference's constructor takes is not on a candidate's clock, beyond it is") {
  Bench bench;
  bench.machine.constructing = absl::Milliseconds(300);
  bench.options.lane_seconds_max = 0.2;
  const Verified verified = bench.Run();
  CHECK_FALSE(verified.fault);
  CHECK(verified.constructing == bench.machine.constructing);
  CHECK(verified.waited == absl::ZeroDuration());
  bench.options.lane_since = absl::Now() - absl::Milliseconds(300);
  CHECK(bench.Run().fault->verdict == v1::VERDICT_TIMEOUT);
}

TEST_CASE("a candidate is verified in the room that was asked for") {
  for (const Room room : {Room::kSealed, Room::kOpen}) {
    Bench bench;
    bench.options.room = room;
    bench.candidate().calls = FaultAt(0, Wrong());
    CHECK(bench.Run().fault);
  }
}

TEST_CASE("a candidate that is wrong on one style is told whether it is the scale alone") {
  const auto at_scale_only = [](const char* style, const Fault& fault) {
    Bench bench;
    bench.candidate().calls = FaultOn(style, fault);
    CHECK(bench.Run().fault->reason == fault.reason);
    CHECK(bench.machine.called_on.back() == style);
    return bench.measurement.advice_facts().wrong_at_scale_only();
  };
  CHECK_FALSE(at_scale_only("own", Wrong()));
  CHECK(at_scale_only("large", Wrong()));
  CHECK(at_scale_only("outliers", {v1::VERDICT_NON_FINITE, "1 of 4 elements wrong"}));
  CHECK_FALSE(at_scale_only("large", Crash()));
  CHECK_FALSE(at_scale_only("large", Hang()));
}

TEST_CASE("in place of a style that is unusable the task's own inputs are verified") {
  const nlohmann::json unusable = {{"op", "unusable"}};
  const nlohmann::json answers = {{"draw large", unusable}, {"draw outliers", unusable}};
  const nlohmann::json script = {{"answers", answers}};
  Bench bench(script);
  CHECK_FALSE(bench.Run().fault);
  CHECK(bench.machine.called_on == std::vector<std::string>{"own", "own", "small", "mixed", "own"});
}

TEST_CASE(
    "a fault ends the verification where it comes: its process is not called again, nor another begun") {
  for (const Fault& fault : {Wrong(), Crash(), Hang()}) {
    Bench bench(Loaded({{"num_other_inputs", 2}}));
    bench.options.repeats = true;
    bench.candidate().has_threads = true;
    bench.candidate().calls = FaultAt(2, fault);
    const Verified verified = bench.Run();
    REQUIRE(verified.fault);
    CHECK(verified.fault->verdict == fault.verdict);
    CHECK(verified.fault->reason == fault.reason);
    CHECK(bench.machine.num_calls_after_fault == 0);
    CHECK(bench.machine.num_started == 1);
  }
}

TEST_CASE("a candidate that does not load has its fault, and is called on nothing") {
  Bench bench;
  bench.candidate().start_fault = Fault{v1::VERDICT_RUNTIME_ERROR, "no `run`"};
  const Verified verified = bench.Run();
  CHECK(verified.fault->reason == "no `run`");
  CHECK(bench.machine.called_on.empty());
}

TEST_CASE("a device that is lost is no fault, wherever that comes") {
  Bench bench;
  bench.machine.lost = absl::UnavailableError("lost");
  CHECK(bench.TryRun().status() == bench.machine.lost);
  Bench later;
  later.candidate().calls = [&](const Draw&, int) {
    later.machine.lost = absl::UnavailableError("lost");
    return std::nullopt;
  };
  CHECK(later.TryRun().status() == later.machine.lost);
  CHECK(later.num_draws() == 1);
}

TEST_CASE("a candidate that takes no parameters is verified with those of its construction") {
  Bench bench(WithWeight());
  bench.candidate().takes_parameters = false;
  CHECK_FALSE(bench.Run().takes_parameters);
  CHECK(bench.machine.parameter_seeds == std::vector<int64_t>{0, 0, 0});
  Bench takes(WithWeight());
  CHECK(takes.Run().takes_parameters);
  CHECK(takes.num_draws() == 6);
}

TEST_CASE("a candidate is verified on inputs of other shapes in a process of its own") {
  Bench right(Loaded({{"num_other_inputs", 2}}));
  CHECK_FALSE(right.Run().fault);
  CHECK(right.num_draws() == 15);
  CHECK(right.machine.num_started == 3);
  Bench wrong(Loaded({{"num_other_inputs", 2}}));
  wrong.candidate().calls = [&](const Draw&, int) {
    return wrong.machine.num_started == 2 ? std::optional(Wrong()) : std::nullopt;
  };
  CHECK(wrong.Run().fault->reason == "on inputs of other shapes or strides: 4 of 4 elements wrong");
  CHECK(wrong.num_draws() == 6);
}

TEST_CASE("a candidate is verified as long as it may hold the lane") {
  Bench late;
  late.options.lane_since = absl::Now() - absl::Seconds(61);
  const Verified verified = late.Run();
  REQUIRE(verified.fault);
  CHECK(verified.fault->verdict == v1::VERDICT_TIMEOUT);
  CHECK(late.num_draws() == 0);
}

// Threads that overwrite each other do not meet in every call.
TEST_CASE("a candidate with threads is verified several times over, as long as that is quick") {
  const auto num_draws = [](bool has_threads, double long_call_us) {
    Bench bench;
    bench.candidate().has_threads = has_threads;
    bench.options.long_call_us = long_call_us;
    CHECK_FALSE(bench.Run().fault);
    return bench.num_draws();
  };
  CHECK(num_draws(true, 1e9) == 5 * 5);
  CHECK(num_draws(true, 0) == 5);
  CHECK(num_draws(false, 1e9) == 5);
}

// Of 24 calls that may be repeated, all are or none is once in eight million times.
TEST_CASE(
    "some calls follow a repeated one where timed ones do, the first never, nor one after a long call") {
  const auto num_repeated = [](bool repeats, double us) {
    Bench bench;
    bench.candidate().has_threads = true;
    bench.candidate().us = us;
    bench.options.repeats = repeats;
    bench.options.long_call_us = 1e9;
    CHECK_FALSE(bench.Run().fault);
    CHECK(bench.num_draws() == 25);
    return bench.machine.num_repeated;
  };
  CHECK(num_repeated(true, 10) > 0);
  CHECK(num_repeated(true, 10) < 24);
  CHECK(num_repeated(false, 10) == 0);
  CHECK(num_repeated(true, 2e9) == 0);
}

TEST_CASE("a fault of a repeated call counts as that of another") {
  Bench bench;
  bench.candidate().has_threads = true;
  bench.options.repeats = true;
  bench.options.long_call_us = 1e9;
  bench.candidate().calls = [&](const Draw&, int) {
    return bench.machine.num_repeated > 0 ? std::optional(Crash()) : std::nullopt;
  };
  CHECK(bench.Run().fault->reason == Crash().reason);
  CHECK(bench.machine.num_calls_after_fault == 0);
}

}  // namespace
}  // namespace warpsmith
