#include "reward_service/scoring/formulas.h"

#include <algorithm>
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

TEST_CASE("the formulas of Warpsmith reward credited speed-up") {
  RewardInputs inputs = Correct(4.0);
  inputs.credited_speedup = 0.0;
  CHECK(Value("warpsmith-v3", inputs) == Approx(0.3));
  CHECK(Value("warpsmith-v1", inputs) == Approx(0.3));
  CHECK(Value("warpsmith-v2", inputs) == Approx(0.3));
  CHECK(Value("stitchcuda-v1", inputs) == 3.0);
}

TEST_CASE("warpsmith-v3 is the default") {
  CHECK(ComputeReward("", Correct(4.0))->formula() == "warpsmith-v3");
  CHECK(Value("", Correct(4.0)) == Approx(4.3));
  CHECK(FormulaNames().front() == "warpsmith-v3");
}

RewardInputs WithLibraries(double credited_speedup, double library_share, int rubric_total = 12) {
  RewardInputs inputs = Correct(credited_speedup, rubric_total);
  inputs.library_share = library_share;
  return inputs;
}

TEST_CASE("the bonus of warpsmith-v3 belongs to own work, that of warpsmith-v2 to every correct program") {
  CHECK(Value("warpsmith-v3", WithLibraries(0.5, 1)) == Approx(0.5));
  CHECK(Value("warpsmith-v3", WithLibraries(0.5, 0.4)) == Approx(0.5 + 0.3 * 0.6));
  CHECK(Value("warpsmith-v3", WithLibraries(0, 1)) == 0.0);
  CHECK(Value("warpsmith-v3", WithLibraries(7, 1, 20)) == Approx(5 * 1.5));
  CHECK(Value("warpsmith-v2", WithLibraries(0.5, 1)) == Approx(0.8));
}

TEST_CASE("where no library could do the work warpsmith-v3 is warpsmith-v2") {
  for (const double speedup : {-1.0, 0.0, 0.5, 2.0, 5.0, 100.0}) {
    for (const v1::Skill skill : {v1::SKILL_GENERATE, v1::SKILL_OPTIMISE}) {
      CHECK(Value("warpsmith-v3", Correct(speedup, 17, skill)) ==
            Value("warpsmith-v2", Correct(speedup, 17, skill)));
    }
  }
}

TEST_CASE("the value of warpsmith-v3 follows from its terms") {
  const v1::Reward reward = *ComputeReward("warpsmith-v3", WithLibraries(1.4, 0.7, 10));
  std::map<std::string, double> terms = TermsOf(reward);
  CHECK(terms["library_share"] == 0.7);
  CHECK(terms["base"] ==
        Approx(std::min(terms["credited_speedup"], 5.0) + 0.3 * (1 - terms["library_share"])));
  const double multiplier = 1 + terms["lambda"] * ((terms["rubric_total"] - 4) / 16 - 0.5);
  CHECK(terms["correct"] * terms["base"] * multiplier == Approx(reward.value()));
}

TEST_CASE("warpsmith-v2 counts up to five times before the rubric, and is not clamped after it") {
  CHECK(Value("warpsmith-v2", Correct(1.0)) == Approx(1.3));
  CHECK(Value("warpsmith-v2", Correct(2.0, 20)) == Approx(2.3 * 1.5));
  CHECK(Value("warpsmith-v2", Correct(2.0, 20, v1::SKILL_OPTIMISE)) == Approx(2.3 * 1.35));
  CHECK(Value("warpsmith-v2", Correct(100.0, 20)) == Approx(5.3 * 1.5));
  CHECK(Value("warpsmith-v2", Correct(-1.0)) == Approx(0.3));
}

TEST_CASE("warpsmith-v2 never falls with the credited speed-up, and rises up to five times") {
  double former = -1.0;
  for (double speedup = 0.0; speedup < 100.0; speedup += speedup < 5.0 ? 0.25 : 7.5) {
    const double value = Value("warpsmith-v2", Correct(speedup, 20));
    INFO(speedup);
    CHECK((speedup <= 5.0 ? value > former : value >= former));
    former = value;
  }
}

TEST_CASE("warpsmith-v2 still tells programs apart where warpsmith-v1 ends") {
  CHECK(Value("warpsmith-v1", Correct(2.0, 20)) == Value("warpsmith-v1", Correct(4.0, 20)));
  CHECK(Value("warpsmith-v2", Correct(4.0, 20)) > Value("warpsmith-v2", Correct(2.0, 20)) + 0.5);
}

TEST_CASE("below its clamp warpsmith-v1 is warpsmith-v2") {
  for (const double speedup : {0.0, 0.5, 1.0, 1.6}) {
    CHECK(Value("warpsmith-v1", Correct(speedup, 20)) == Value("warpsmith-v2", Correct(speedup, 20)));
  }
}

TEST_CASE("the value of warpsmith-v2 follows from its terms") {
  RewardInputs inputs = Correct(2.5, 17, v1::SKILL_OPTIMISE);
  inputs.credited_speedup = 2.4;
  const v1::Reward reward = *ComputeReward("warpsmith-v2", inputs);
  std::map<std::string, double> terms = TermsOf(reward);
  CHECK(terms["base"] == Approx(std::min(terms["credited_speedup"], 5.0) + 0.3));
  const double multiplier = 1 + terms["lambda"] * ((terms["rubric_total"] - 4) / 16 - 0.5);
  CHECK(terms["correct"] * terms["base"] * multiplier == Approx(reward.value()));
}

TEST_CASE("programs that are not correct get 0, and -1 from cuda-agent-v1") {
  for (const v1::Verdict verdict : {v1::VERDICT_NO_CODE, v1::VERDICT_COMPILE_ERROR, v1::VERDICT_RUNTIME_ERROR,
                                    v1::VERDICT_TIMEOUT, v1::VERDICT_WRONG_SHAPE, v1::VERDICT_WRONG_DTYPE,
                                    v1::VERDICT_NON_FINITE, v1::VERDICT_INCORRECT, v1::VERDICT_HACK}) {
    CHECK(Value("warpsmith-v1", Wrong(verdict)) == 0.0);
    CHECK(Value("stitchcuda-v1", Wrong(verdict)) == 0.0);
    CHECK(Value("warpsmith-v2", Wrong(verdict)) == 0.0);
    CHECK(Value("warpsmith-v3", Wrong(verdict)) == 0.0);
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
