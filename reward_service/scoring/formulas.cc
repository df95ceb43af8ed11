#include "reward_service/scoring/formulas.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace warpsmith {
namespace {

constexpr double kSpeedupMax = 5.0;
constexpr double kCorrectBonus = 0.3;
constexpr double kRewardMax = 3.0;
constexpr double kLambdaGenerate = 1.0;
constexpr double kLambdaOptimise = 0.7;
// "Over 5 % faster": (reference - candidate) / reference > 0.05.
constexpr double kMilestoneShare = 0.05;

bool Correct(const RewardInputs& inputs) { return inputs.verdict == v1::VERDICT_CORRECT; }

void AddTerm(const char* name, double value, v1::Reward* reward) {
  v1::RewardTerm* term = reward->add_terms();
  term->set_name(name);
  term->set_value(value);
}

// Clamps without hiding a NaN, which std::clamp would pass on only by luck of its comparisons.
double Clamp(double value, double low, double high) {
  if (std::isnan(value)) return value;
  return std::min(std::max(value, low), high);
}

// Returns what the rubric makes of `speedup` and `bonus`, whether the program is correct or not.
double TimesRubric(double speedup, double bonus, const RewardInputs& inputs, v1::Reward* reward) {
  const double base = Clamp(speedup, 0.0, kSpeedupMax) + bonus;
  const double lambda = inputs.skill == v1::SKILL_OPTIMISE ? kLambdaOptimise : kLambdaGenerate;
  const double r = (inputs.rubric_total - 4) / 16.0;
  const double multiplier = 1.0 + lambda * (r - 0.5);
  AddTerm("base", base, reward);
  AddTerm("rubric_total", inputs.rubric_total, reward);
  AddTerm("rubric_r", r, reward);
  AddTerm("lambda", lambda, reward);
  AddTerm("multiplier", multiplier, reward);
  return base * multiplier;
}

double ClampedTimesRubric(double speedup, const RewardInputs& inputs, v1::Reward* reward) {
  const double unclamped = TimesRubric(speedup, kCorrectBonus, inputs, reward);
  AddTerm("unclamped", unclamped, reward);
  return Correct(inputs) ? Clamp(unclamped, 0.0, kRewardMax) : 0.0;
}

double StitchCuda(const RewardInputs& inputs, v1::Reward* reward) {
  return ClampedTimesRubric(inputs.speedup, inputs, reward);
}

double WarpsmithV1(const RewardInputs& inputs, v1::Reward* reward) {
  AddTerm("credited_speedup", inputs.credited_speedup, reward);
  return ClampedTimesRubric(inputs.credited_speedup, inputs, reward);
}

double WarpsmithV2(const RewardInputs& inputs, v1::Reward* reward) {
  AddTerm("credited_speedup", inputs.credited_speedup, reward);
  const double value = TimesRubric(inputs.credited_speedup, kCorrectBonus, inputs, reward);
  return Correct(inputs) ? value : 0.0;
}

double WarpsmithV3(const RewardInputs& inputs, v1::Reward* reward) {
  AddTerm("credited_speedup", inputs.credited_speedup, reward);
  AddTerm("library_share", inputs.library_share, reward);
  const double bonus = kCorrectBonus * (1 - inputs.library_share);
  const double value = TimesRubric(inputs.credited_speedup, bonus, inputs, reward);
  return Correct(inputs) ? value : 0.0;
}

double CudaAgent(const RewardInputs& inputs, v1::Reward* reward) {
  AddTerm("compile_baseline_measured", inputs.compile_speedup.has_value(), reward);
  if (inputs.compile_speedup.has_value()) AddTerm("compile_speedup", *inputs.compile_speedup, reward);
  if (!Correct(inputs)) return -1.0;
  if (std::isnan(inputs.speedup)) return inputs.speedup;
  const double threshold = 1.0 / (1.0 - kMilestoneShare);
  if (inputs.speedup <= threshold) return 1.0;
  return inputs.compile_speedup.value_or(0.0) > threshold ? 3.0 : 2.0;
}

double Kevin(const RewardInputs& inputs, v1::Reward*) {
  return Correct(inputs) ? kCorrectBonus + inputs.speedup : 0.0;
}

double KernelGym(const RewardInputs& inputs, v1::Reward* reward) {
  AddTerm("compiled", inputs.compiled, reward);
  if (!inputs.compiled) return -0.5;
  if (!Correct(inputs)) return -0.3;
  if (std::isnan(inputs.speedup)) return inputs.speedup;
  constexpr struct {
    double speedup_min, value;
  } kBuckets[] = {{3.0, 1.0}, {2.0, 0.8}, {1.5, 0.6}, {1.2, 0.4}, {1.0, 0.2}};
  for (const auto& bucket : kBuckets) {
    if (inputs.speedup >= bucket.speedup_min) return bucket.value;
  }
  return -0.1;
}

struct Formula {
  std::string_view name;
  double (*compute)(const RewardInputs&, v1::Reward*);
};

constexpr Formula kFormulas[] = {{kDefaultFormula, WarpsmithV3}, {"warpsmith-v2", WarpsmithV2},
                                 {"warpsmith-v1", WarpsmithV1},  {"stitchcuda-v1", StitchCuda},
                                 {"cuda-agent-v1", CudaAgent},   {"kevin-v1", Kevin},
                                 {"kernelgym-v1", KernelGym}};

bool HasReward(v1::Verdict verdict) {
  return verdict != v1::VERDICT_UNSCORABLE && verdict != v1::VERDICT_INVALID_TASK &&
         verdict != v1::VERDICT_UNSPECIFIED;
}

}  // namespace

std::vector<std::string_view> FormulaNames() {
  std::vector<std::string_view> names;
  for (const Formula& formula : kFormulas) names.push_back(formula.name);
  return names;
}

absl::StatusOr<v1::Reward> ComputeReward(std::string_view name, const RewardInputs& inputs) {
  if (name.empty()) name = kDefaultFormula;
  for (const Formula& formula : kFormulas) {
    if (formula.name != name) continue;
    v1::Reward reward;
    reward.set_formula(std::string(name));
    if (!HasReward(inputs.verdict)) return reward;
    AddTerm("correct", Correct(inputs), &reward);
    AddTerm("speedup", inputs.speedup, &reward);
    const double value = formula.compute(inputs, &reward);
    if (std::isfinite(value)) reward.set_value(value);
    return reward;
  }
  std::vector<std::string> known;
  for (const std::string_view formula : FormulaNames()) known.emplace_back(formula);
  return absl::InvalidArgumentError(
      absl::StrCat("no reward formula \"", std::string(name), "\"; known: ", absl::StrJoin(known, ", ")));
}

}  // namespace warpsmith
