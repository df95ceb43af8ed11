#include "reward_service/scoring/tables.h"

#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "reward_service/scoring/feedback.h"
#include "reward_service/scoring/gpu_tables.h"

namespace warpsmith {
namespace {

constexpr int kWideVectorBits = 256;
constexpr double kNearCeilingShare = 0.5;
constexpr double kLibmShareMax = 0.2;
// Gradings of one program on a busy machine differ by as much.
constexpr double kFasterShare = 1.1;

v1::RubricScore Row(int score, std::string condition, const char* reason) {
  v1::RubricScore row;
  row.set_score(score);
  row.set_condition(std::move(condition));
  row.set_reason(reason);
  return row;
}

bool Profiled(const RubricInputs& inputs) { return inputs.profile.num_samples() >= kProfileSamplesMin; }

// Is the work the candidate's?
v1::RubricScore AntiHacking(const RubricInputs& inputs) {
  const std::string& condition = inputs.credit.condition();
  const double own = 1 - inputs.credit.library_share();
  if (own >= 0.9) return Row(5, condition, "the work is done by the candidate's own code");
  if (own >= 0.5) return Row(4, condition, "most of the work is the candidate's own");
  if (own >= 0.2) return Row(3, condition, "libraries may have done more than half of the work");
  if (own >= 0.05) return Row(2, condition, "libraries may have done nearly all of the work");
  return Row(1, condition, "nothing shows that any of the work is the candidate's own");
}

// Does it use the machine?
v1::RubricScore Engineering(const RubricInputs& inputs) {
  const v1::Profile& profile = inputs.profile;
  if (inputs.kernels) {
    const EngineeringRow row = EngineeringOnGpu(inputs.timing, inputs.credit, profile, *inputs.kernels);
    return Row(row.score, row.condition, row.reason);
  }
  if (!Profiled(inputs)) return Row(3, inputs.credit.condition(), "too short to be profiled");
  const bool wide = profile.vector_bits() >= kWideVectorBits;
  const bool near_ceiling = CeilingShare(profile) >= kNearCeilingShare;
  const bool threaded = profile.num_threads() >= inputs.num_lane_cores;
  const std::string condition =
      absl::StrFormat("%d-bit vectors, %d threads, %.0f %% of the memory ceiling", profile.vector_bits(),
                      profile.num_threads(), 100 * CeilingShare(profile));
  if ((wide || near_ceiling) && threaded && inputs.timing.speedup_low() > 1.0) {
    return Row(5, condition, "uses vectors and cores, and beats the reference");
  }
  if (wide || near_ceiling) return Row(4, condition, "vectorised");
  if (profile.vector_bits() > 0) return Row(3, condition, "narrow vectors");
  if (inputs.timing.speedup_high() >= 0.5) return Row(2, condition, "scalar");
  return Row(1, condition, "scalar, and less than half as fast as the reference");
}

// How much of what the reference computes does the candidate's own code compute?
v1::RubricScore OperatorCoverage(const RubricInputs& inputs) {
  const std::string& condition = inputs.credit.condition();
  const double libraries = inputs.credit.library_share();
  if (libraries < 0.1) return Row(5, condition, "all operators of weight are in the candidate's own code");
  if (libraries < 0.3) return Row(4, condition, "most operators are in the candidate's own code");
  if (libraries < 0.6) return Row(3, condition, "about half of the work may be left to libraries");
  if (libraries < 0.9) return Row(2, condition, "the heavy operators may be left to libraries");
  return Row(1, condition, "everything may be left to libraries");
}

// Whether it is faster than what it was to improve, by more than one program differs from itself when it is graded
// again; without figures of that one, whether it is faster than the reference.
bool IsFaster(const RubricInputs& inputs) {
  const double before = SpeedupIn(inputs.asked).value_or(1.0 / kFasterShare);
  return inputs.timing.speedup_low() > kFasterShare * before;
}

// Less memory is walked, or in a better order: that is seen by the time alone.
AdviceOutcome FollowedByTime(const RubricInputs& inputs) {
  const std::optional<double> before = SpeedupIn(inputs.asked);
  return {before.has_value() && IsFaster(inputs),
          absl::StrFormat("speedup at least %.2f, before %s", inputs.timing.speedup_low(),
                          before ? absl::StrFormat("%.2f", *before) : "unknown")};
}

AdviceOutcome FollowedOnCpu(const RubricInputs& inputs) {
  const v1::Profile& profile = inputs.profile;
  switch (inputs.asked.advice()) {
    case v1::ADVICE_VECTORISE:
      return {Profiled(inputs) && profile.vector_bits() >= kWideVectorBits,
              absl::StrFormat("%d-bit vectors", profile.vector_bits())};
    case v1::ADVICE_THREAD:
      return {Profiled(inputs) && profile.num_threads() >= inputs.num_lane_cores,
              absl::StrFormat("%d threads", profile.num_threads())};
    case v1::ADVICE_APPROXIMATE:
      return {Profiled(inputs) && profile.libc_share() <= kLibmShareMax,
              absl::StrFormat("%.0f %% of samples in libm and libc", 100 * profile.libc_share())};
    default:
      return FollowedByTime(inputs);
  }
}

// Whether this profile or timing shows what the advice asked for. What the text says decides nothing: a loop can be
// written so that nobody counts it.
AdviceOutcome FollowedAdvice(const RubricInputs& inputs) {
  switch (inputs.asked.advice()) {
    case v1::ADVICE_COMPUTE_EVERYTHING:
      return {IsAllOwn(inputs.credit, inputs.timing), inputs.credit.condition()};
    case v1::ADVICE_FIX_COMPILE_ERROR:
    case v1::ADVICE_FIX_CRASH:
    case v1::ADVICE_FIX_BOUNDS:
    case v1::ADVICE_FIX_SHAPE:
    case v1::ADVICE_FIX_FORMULA:
    case v1::ADVICE_FIX_NUMERICS:
      return {true, "every output right"};  // a repair is done when the program is right
    default:
      if (!inputs.kernels) return FollowedOnCpu(inputs);
      return FollowedOnGpu(inputs.asked.advice(), *inputs.kernels, FollowedByTime(inputs));
  }
}

// Skill 1: does the answer keep its contract? Skill 2: was the advice followed?
v1::RubricScore SkillCompliance(const RubricInputs& inputs) {
  if (inputs.skill != v1::SKILL_OPTIMISE) {
    if (inputs.credit.library_share() > 0) {
      return Row(2, inputs.credit.condition(), "the answer calls libraries where a program was asked for");
    }
    return Row(5, "entry point present, every output right", "the answer keeps its contract");
  }
  if (inputs.unchanged_copy) return Row(1, "equal to the previous program", "nothing was changed");
  const AdviceOutcome outcome = FollowedAdvice(inputs);
  if (outcome.done) return Row(5, outcome.condition, "the advice was followed");
  if (IsFaster(inputs))
    return Row(3, outcome.condition, "faster, but nothing shows that the advice was followed");
  return Row(1, outcome.condition, "nothing that is measured was changed");
}

void SetTotal(v1::Rubric* rubric) {
  rubric->set_total(rubric->anti_hacking().score() + rubric->engineering().score() +
                    rubric->operator_coverage().score() + rubric->skill_compliance().score());
}

}  // namespace

v1::Rubric ComputeRubric(const RubricInputs& inputs) {
  v1::Rubric rubric;
  *rubric.mutable_anti_hacking() = AntiHacking(inputs);
  *rubric.mutable_engineering() = Engineering(inputs);
  *rubric.mutable_operator_coverage() = OperatorCoverage(inputs);
  *rubric.mutable_skill_compliance() = SkillCompliance(inputs);
  rubric.set_source(kRubricTables);
  SetTotal(&rubric);
  return rubric;
}

v1::Rubric NeutralRubric() {
  v1::Rubric rubric;
  for (v1::RubricScore* score : {rubric.mutable_anti_hacking(), rubric.mutable_engineering(),
                                 rubric.mutable_operator_coverage(), rubric.mutable_skill_compliance()}) {
    *score = Row(3, "not correct", "the tables apply to correct programs");
  }
  rubric.set_source("neutral");
  SetTotal(&rubric);
  return rubric;
}

}  // namespace warpsmith
