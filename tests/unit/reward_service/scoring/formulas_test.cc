#include "reward_service/scoring/formulas.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

RewardInputs Correct(double speedup, int rubric_total = 12, v1::Skill skill = v1::SKILL_GENERATE) {
  RewardInputs inputs;
  inputs.verdict = v1::VERDICT_CORRECT;
  inputs.compiled = true;
  inputs.speedup = speedup;
  inputs.credited_speedup = speedup;
  inputs.rubric_total = rubric_total;
  inputs.skill = skill;
  return inputs;
}

// A candidate of a task whose reference reaches a tenth of the memory's bandwidth.
RewardInputs WithShare(double speedup, double credited, int rubric_total = 12) {
  RewardInputs inputs = Correct(speedup, rubric_total);
  inputs.credited_speedup = credited;
  inputs.limit_share = 0.1 * speedup;
  return inputs;
}

// Candidates for warpsmith-v2.
constexpr const char* kUncapped[] = {"warpsmith-v2-linear", "warpsmith-v2-log", "warpsmith-v2-roofline"};

std::map<std::string, double> TermsOf(const v1::Reward& reward) {
  std::map<std::string, double> terms;
  for (const v1::RewardTerm& term : reward.terms()) terms[term.name()] = term.value();
  return terms;
}

RewardInputs Wrong(v1::Verdict verdict, bool compiled = true) {
  RewardInputs inputs = Correct(2.0);
  inputs.verdict = verdict;
  inputs.compiled = compiled;
  return inputs;
}

double Value(const char* formula, const RewardInputs& inputs) {
  const absl::StatusOr<v1::Reward> reward = ComputeReward(formula, inputs);
  REQUIRE(reward.ok());
  REQUIRE(reward->has_value());
  return reward->value();
}

TEST_CASE("stitchcuda-v1 gives the values of its authors' code") {
  CHECK(Value("stitchcuda-v1", Correct(1.0)) == Approx(1.3));                // neutral rubric: multiplier 1
  CHECK(Value("stitchcuda-v1", Correct(1.024, 8)) == Approx(1.324 * 0.75));  // a renamed reference: 0.99
  CHECK(Value("stitchcuda-v1", Correct(0.576, 15)) == Approx(0.876 * 1.1875));  // a genuine kernel: 1.04
  CHECK(Value("stitchcuda-v1", Correct(1.0, 20)) == Approx(1.3 * 1.5));
  CHECK(Value("stitchcuda-v1", Correct(1.0, 4)) == Approx(1.3 * 0.5));
  CHECK(Value("stitchcuda-v1", Correct(1.0, 20, v1::SKILL_OPTIMISE)) == Approx(1.3 * 1.35));
  CHECK(Value("stitchcuda-v1", Correct(1.0, 4, v1::SKILL_OPTIMISE)) == Approx(1.3 * 0.65));
}

TEST_CASE("stitchcuda-v1 clamps speed-up to 5 and reward to 3") {
  CHECK(Value("stitchcuda-v1", Correct(2.7)) == Approx(3.0));
  CHECK(Value("stitchcuda-v1", Correct(100.0)) == 3.0);
  CHECK(Value("stitchcuda-v1", Correct(100.0, 4)) == Approx(5.3 * 0.5));
  CHECK(Value("stitchcuda-v1", Correct(-1.0)) == Approx(0.3));
}

TEST_CASE("warpsmith-v1 is the default and rewards credited speed-up") {
  RewardInputs inputs = Correct(4.0);
  inputs.credited_speedup = 0.0;
  CHECK(Value("warpsmith-v1", inputs) == Approx(0.3));
  CHECK(Value("", inputs) == Approx(0.3));
  CHECK(Value("stitchcuda-v1", inputs) == 3.0);
  CHECK(ComputeReward("", inputs)->formula() == "warpsmith-v1");
}

TEST_CASE("warpsmith-v2-linear counts up to five times before the rubric, and is not clamped after it") {
  CHECK(Value("warpsmith-v2-linear", Correct(1.0)) == Approx(1.3));
  CHECK(Value("warpsmith-v2-linear", Correct(2.0, 20)) == Approx(2.3 * 1.5));
  CHECK(Value("warpsmith-v2-linear", Correct(2.0, 20, v1::SKILL_OPTIMISE)) == Approx(2.3 * 1.35));
  CHECK(Value("warpsmith-v2-linear", Correct(100.0, 20)) == Approx(5.3 * 1.5));
  CHECK(Value("warpsmith-v2-linear", Correct(-1.0)) == Approx(0.3));
}

TEST_CASE("warpsmith-v2-log is 1.3 at the reference's speed, as the linear one, and has no ceiling") {
  CHECK(Value("warpsmith-v2-log", Correct(0.0)) == Approx(0.3));
  CHECK(Value("warpsmith-v2-log", Correct(1.0)) == Approx(1.3));
  CHECK(Value("warpsmith-v2-log", Correct(3.0)) == Approx(2.3));
  CHECK(Value("warpsmith-v2-log", Correct(7.0, 20)) == Approx(3.3 * 1.5));
  CHECK(Value("warpsmith-v2-log", Correct(1023.0)) == Approx(10.3));
  CHECK(Value("warpsmith-v2-log", Correct(-1.0)) == Approx(0.3));
}

TEST_CASE("warpsmith-v2-roofline is five times the share of the memory's bandwidth at the credited speed") {
  CHECK(Value("warpsmith-v2-roofline", WithShare(2.0, 2.0)) == Approx(0.3 + 5 * 0.2));
  CHECK(Value("warpsmith-v2-roofline", WithShare(2.0, 1.0)) == Approx(0.3 + 5 * 0.1));  // the reference's own
  CHECK(Value("warpsmith-v2-roofline", WithShare(2.0, 0.0)) == Approx(0.3));
  CHECK(Value("warpsmith-v2-roofline", WithShare(10.0, 10.0)) == Approx(5.3));
  CHECK(Value("warpsmith-v2-roofline", WithShare(30.0, 30.0, 20)) == Approx(5.3 * 1.5));  // out of a cache
}

TEST_CASE("warpsmith-v2-roofline has no value where the share or the speed was not measured") {
  RewardInputs inputs = WithShare(2.0, 2.0);
  inputs.limit_share.reset();
  CHECK_FALSE(ComputeReward("warpsmith-v2-roofline", inputs)->has_value());
  inputs = WithShare(2.0, 1.0);
  inputs.speedup = 0.0;
  CHECK_FALSE(ComputeReward("warpsmith-v2-roofline", inputs)->has_value());
  CHECK(Value("warpsmith-v2-roofline", Wrong(v1::VERDICT_HACK)) == 0.0);
}

TEST_CASE("candidates for warpsmith-v2 never fall with the credited speed-up, and rise up to five times") {
  for (const char* formula : kUncapped) {
    double former = -1.0;
    for (double speedup = 0.0; speedup < 100.0; speedup += speedup < 5.0 ? 0.25 : 7.5) {
      const double value = Value(formula, WithShare(speedup, speedup));
      INFO(formula << " at " << speedup);
      CHECK((speedup <= 5.0 ? value > former : value >= former));
      former = value;
    }
  }
}

TEST_CASE("candidates for warpsmith-v2 give all that is not told from the reference the same reward") {
  for (const char* formula : kUncapped) {
    INFO(formula);
    const double exact = Value(formula, WithShare(1.0, 1.0));
    CHECK(Value(formula, WithShare(0.97, 1.0)) == Approx(exact).epsilon(1e-12));
    CHECK(Value(formula, WithShare(1.06, 1.0)) == Approx(exact).epsilon(1e-12));
  }
}

TEST_CASE("candidates for warpsmith-v2 still tell programs apart where warpsmith-v1 ends") {
  CHECK(Value("warpsmith-v1", WithShare(2.0, 2.0, 20)) == Value("warpsmith-v1", WithShare(4.0, 4.0, 20)));
  for (const char* formula : kUncapped) {
    INFO(formula);
    CHECK(Value(formula, WithShare(4.0, 4.0, 20)) > Value(formula, WithShare(2.0, 2.0, 20)) + 0.5);
  }
}

TEST_CASE("the value of candidates for warpsmith-v2 follows from their terms") {
  for (const char* formula : kUncapped) {
    INFO(formula);
    const v1::Reward reward = *ComputeReward(formula, WithShare(2.5, 2.4, 17));
    std::map<std::string, double> terms = TermsOf(reward);
    double merit = std::min(terms["credited_speedup"], 5.0);
    if (formula == kUncapped[1]) merit = std::log2(1 + terms["credited_speedup"]);
    if (formula == kUncapped[2])
      merit = 5 * terms["limit_share"] * terms["credited_speedup"] / terms["speedup"];
    const double multiplier = 1 + terms["lambda"] * ((terms["rubric_total"] - 4) / 16 - 0.5);
    CHECK(terms["correct"] * (merit + 0.3) * multiplier == Approx(reward.value()));
  }
}

TEST_CASE("an infinite speed-up has no value where nothing bounds it") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CHECK_FALSE(ComputeReward("warpsmith-v2-log", Correct(kInfinity))->has_value());
  CHECK_FALSE(ComputeReward("warpsmith-v2-roofline", WithShare(kInfinity, kInfinity))->has_value());
}

TEST_CASE("programs that are not correct get 0, and -1 from cuda-agent-v1") {
  for (const v1::Verdict verdict : {v1::VERDICT_NO_CODE, v1::VERDICT_COMPILE_ERROR, v1::VERDICT_RUNTIME_ERROR,
                                    v1::VERDICT_TIMEOUT, v1::VERDICT_WRONG_SHAPE, v1::VERDICT_WRONG_DTYPE,
                                    v1::VERDICT_NON_FINITE, v1::VERDICT_INCORRECT, v1::VERDICT_HACK}) {
    CHECK(Value("warpsmith-v1", Wrong(verdict)) == 0.0);
    CHECK(Value("stitchcuda-v1", Wrong(verdict)) == 0.0);
    for (const char* formula : kUncapped) CHECK(Value(formula, Wrong(verdict)) == 0.0);
    CHECK(Value("kevin-v1", Wrong(verdict)) == 0.0);
    CHECK(Value("cuda-agent-v1", Wrong(verdict)) == -1.0);
  }
}

TEST_CASE("failures of the service and of the task have no value in any formula") {
  for (const std::string_view formula : FormulaNames()) {
    for (const v1::Verdict verdict : {v1::VERDICT_UNSCORABLE, v1::VERDICT_INVALID_TASK}) {
      const absl::StatusOr<v1::Reward> reward = ComputeReward(formula, Wrong(verdict));
      REQUIRE(reward.ok());
      CHECK_FALSE(reward->has_value());
    }
  }
}

TEST_CASE("a speed-up that is not a number has no value in any formula") {
  for (const std::string_view formula : FormulaNames()) {
    CHECK_FALSE(ComputeReward(formula, Correct(std::numeric_limits<double>::quiet_NaN()))->has_value());
  }
}

TEST_CASE("cuda-agent-v1 steps at 5 percent over eager and over torch.compile") {
  CHECK(Value("cuda-agent-v1", Correct(0.5)) == 1.0);
  CHECK(Value("cuda-agent-v1", Correct(1.0526)) == 1.0);  // (1 - 1/s) is just under 5 %
  CHECK(Value("cuda-agent-v1", Correct(1.0527)) == 2.0);
  CHECK(Value("cuda-agent-v1", Correct(50.0)) == 2.0);  // torch.compile was not measured
  RewardInputs inputs = Correct(2.0);
  inputs.compile_speedup = 1.02;
  CHECK(Value("cuda-agent-v1", inputs) == 2.0);
  inputs.compile_speedup = 1.2;
  CHECK(Value("cuda-agent-v1", inputs) == 3.0);
}

TEST_CASE("kevin-v1 is 0.3 and the speed-up") {
  CHECK(Value("kevin-v1", Correct(0.78)) == Approx(1.08));
  CHECK(Value("kevin-v1", Correct(17.7)) == Approx(18.0));
}

TEST_CASE("kernelgym-v1 has its buckets") {
  CHECK(Value("kernelgym-v1", Wrong(v1::VERDICT_COMPILE_ERROR, false)) == -0.5);
  CHECK(Value("kernelgym-v1", Wrong(v1::VERDICT_INCORRECT)) == -0.3);
  CHECK(Value("kernelgym-v1", Correct(0.99)) == -0.1);
  CHECK(Value("kernelgym-v1", Correct(1.0)) == 0.2);
  CHECK(Value("kernelgym-v1", Correct(1.2)) == 0.4);
  CHECK(Value("kernelgym-v1", Correct(1.5)) == 0.6);
  CHECK(Value("kernelgym-v1", Correct(2.0)) == 0.8);
  CHECK(Value("kernelgym-v1", Correct(3.0)) == 1.0);
}

TEST_CASE("the terms are enough to compute the reward again") {
  const v1::Reward reward = *ComputeReward("stitchcuda-v1", Correct(1.5, 16));
  std::map<std::string, double> terms = TermsOf(reward);
  CHECK(terms["base"] == Approx(1.8));
  CHECK(terms["rubric_r"] == Approx(0.75));
  CHECK(terms["base"] * (1 + terms["lambda"] * (terms["rubric_r"] - 0.5)) == Approx(reward.value()));
}

TEST_CASE("an unknown formula is refused with the names that are known") {
  const absl::Status status = ComputeReward("best-v9", Correct(1)).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(std::string(status.message()).find("stitchcuda-v1") != std::string::npos);
}

}  // namespace
}  // namespace warpsmith
