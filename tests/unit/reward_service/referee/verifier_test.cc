#include "reward_service/referee/verifier.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

constexpr CandidateKind kNative = CandidateKind::kNative;
constexpr CandidateKind kPython = CandidateKind::kKernelBenchPython;

// A verification of puppets. Candidates leave 0 in every output; right is what the script expects.
struct Bench {
  explicit Bench(CandidateKind kind, const nlohmann::json& script = nlohmann::json::object())
      : puppets(script), request(PuppetRequest(kind)) {}

  Verified Run() {
    CandidateJails jails({.zygote = puppets.zygote.get(),
                          .lane = &PuppetLane(),
                          .memory_bytes_max = int64_t{1} << 30,
                          .room = Room::kOpen,
                          .deadline = absl::Now() + absl::Seconds(60)},
                         request, AnyProgram().get(), &measurement);
    Verifier verifier(&jails, &PuppetLane(), request, lane_since, long_call_us, &measurement);
    auto verified = verifier.Run(*puppets.task);
    REQUIRE(verified.ok());
    return *std::move(verified);
  }

  int num_draws() const { return measurement.grade().correctness().num_draws(); }

  PuppetTask puppets;
  JudgeRequest request;
  v1::Measurement measurement;
  absl::Time lane_since = absl::Now();
  double long_call_us = 5000;
};

nlohmann::json Tensors(int number, const char* name) {
  nlohmann::json tensors = nlohmann::json::array();
  for (int i = 0; i < number; ++i)
    tensors.push_back({{"code", 2}, {"bits", 32}, {"shape", {4}}, {"name", absl::StrCat(name, i)}});
  return tensors;
}

TEST_CASE("a candidate that is right on every input set has no fault") {
  Bench bench(kNative, {{"loaded", {{"unfamiliar", true}}}, {"prints", "hello\x1b[0m"}});
  const Verified verified = bench.Run();
  CHECK_FALSE(verified.fault);
  CHECK(verified.takes_parameters);
  CHECK(bench.num_draws() == 6);  // own, large, small, mixed, outliers, unfamiliar
  CHECK(verified.output_tail.find("hello") == 0);
  CHECK(verified.output_tail.find('\x1b') == std::string::npos);
}

TEST_CASE("a candidate that is wrong on one style is told on which, and whether it is the scale alone") {
  const auto wrong_on = [](const char* style) {
    Bench bench(kNative, {{"loaded", {{"unfamiliar", true}}}, {"expected", {{style, 3}}}});
    const Verified verified = bench.Run();
    REQUIRE(verified.fault);
    CHECK(verified.fault->verdict == v1::VERDICT_INCORRECT);
    return std::pair{verified.fault->reason, bench.measurement.advice_facts().wrong_at_scale_only()};
  };
  const std::string numbers = "; output 0 [0]: 0, expected 3";
  CHECK(wrong_on("own") == std::pair{"4 of 4 elements wrong" + numbers, false});
  CHECK(wrong_on("large") == std::pair{"4 of 4 elements wrong on large inputs" + numbers, true});
  CHECK(wrong_on("outliers") == std::pair{"4 of 4 elements wrong on outliers inputs" + numbers, true});
  CHECK(wrong_on("unfamiliar") == std::pair{"4 of 4 elements wrong on unfamiliar inputs" + numbers, false});
}

TEST_CASE("a style that the reference does not survive is verified by a milder one") {
  const nlohmann::json unusable = {{"op", "unusable"}};
  Bench bench(kNative, {{"answers",
                         {{"draw large", unusable}, {"draw outliers", unusable}, {"draw sparse", unusable}}},
                        {"expected", {{"large", 3}, {"outliers", 3}, {"sparse", 3}}}});
  CHECK_FALSE(bench.Run().fault);
  CHECK(bench.num_draws() == 5);
}

TEST_CASE("a fault ends the verification where it comes") {
  nlohmann::json runs = {nullptr, nullptr, {{"op", "done"}, {"result", 9}}};
  Bench bench(kNative, {{"answers", {{"run native", runs}}}});
  const Verified verified = bench.Run();
  REQUIRE(verified.fault);
  CHECK(verified.fault->reason == "run() returned 9");
  CHECK_FALSE(bench.measurement.advice_facts().wrong_at_scale_only());
  CHECK(bench.num_draws() == 2);
}

TEST_CASE("a candidate that does not load has its fault, and is called on nothing") {
  Bench bench(kNative, {{"answers", {{"begin native", {{"op", "failed"}, {"error", "no `run`"}}}}}});
  CHECK(bench.Run().fault->reason == "no `run`");
  CHECK(bench.num_draws() == 0);
}

TEST_CASE("a Python candidate that takes no parameters is verified with those of its construction") {
  const nlohmann::json refuses = {{"op", "ready"}, {"parameters_loaded", false}};
  const nlohmann::json script = {{"loaded", {{"parameters", Tensors(1, "weight")}}},
                                 {"answers", {{"begin ModelNew", refuses}}}};
  Bench bench(kPython, script);
  CHECK_FALSE(bench.Run().takes_parameters);
  CHECK(bench.num_draws() == 3);
  // A native one is handed them with every call.
  Bench native(kNative, {{"loaded", {{"parameters", Tensors(1, "weight")}}}});
  CHECK(native.Run().takes_parameters);
  CHECK(native.num_draws() == 6);
}

TEST_CASE("a candidate is verified on inputs of other shapes in a process of its own") {
  Bench right(kNative, {{"loaded", {{"num_other_inputs", 2}}}});
  CHECK_FALSE(right.Run().fault);
  CHECK(right.num_draws() == 15);
  Bench wrong(kNative, {{"loaded", {{"num_other_inputs", 2}}}, {"expected", {{"other", 3}}}});
  const Verified verified = wrong.Run();
  REQUIRE(verified.fault);
  CHECK(verified.fault->reason ==
        "on inputs of other shapes or strides: 4 of 4 elements wrong; output 0 [0]: 0, expected 3");
  CHECK(wrong.num_draws() == 6);
}

TEST_CASE("a candidate is verified as long as it may hold the lane, and one call more") {
  Bench late(kNative);
  late.lane_since = absl::Now() - absl::Seconds(61);
  const Verified verified = late.Run();
  REQUIRE(verified.fault);
  CHECK(verified.fault->verdict == v1::VERDICT_TIMEOUT);
  CHECK(late.num_draws() == 0);
  Bench silent(kNative, {{"answers", {{"run native", {nullptr, "silent"}}}}});
  silent.request.limits.call_seconds_max = 0.02;
  CHECK(silent.Run().fault->verdict == v1::VERDICT_TIMEOUT);
  CHECK(silent.num_draws() == 1);
}

// Threads that overwrite each other do not meet in every call.
TEST_CASE("a candidate with threads is verified several times over, as long as that is quick") {
  Bench quick(kNative, {{"has_thread", true}});
  quick.long_call_us = 1e9;
  CHECK_FALSE(quick.Run().fault);
  CHECK(quick.num_draws() == 5 * 5);
  Bench slow(kNative, {{"has_thread", true}});
  slow.long_call_us = 0;
  CHECK_FALSE(slow.Run().fault);
  CHECK(slow.num_draws() == 5);
  Bench alone(kNative);
  alone.long_call_us = 1e9;
  CHECK_FALSE(alone.Run().fault);
  CHECK(alone.num_draws() == 5);
}

}  // namespace
}  // namespace warpsmith
