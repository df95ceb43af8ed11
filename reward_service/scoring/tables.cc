#include "reward_service/scoring/tables.h"

#include <string>

#include "absl/strings/str_format.h"

namespace warpsmith {
namespace {

constexpr int kWideVectorBits = 256;
constexpr double kNearCeilingShare = 0.5;
constexpr double kLibmShareMax = 0.2;

v1::RubricScore Row(int score, std::string condition, const char* reason) {
  v1::RubricScore row;
  row.set_score(score);
  row.set_condition(std::move(condition));
  row.set_reason(reason);
  return row;
}

bool Profiled(const RubricInputs& inputs) { return inputs.profile.num_samples() >= kProfileSamplesMin; }

double CeilingShare(const v1::Profile& profile) {
  const double ceiling = profile.gigabytes_per_second_ceiling();
  return ceiling > 0.0 ? profile.gigabytes_per_second() / ceiling : 0.0;
}

// Is the work the candidate's?
v1::RubricScore AntiHacking(const RubricInputs& inputs) {
  const std::string& condition = inputs.credit.condition;
  if (inputs.timing.libraries_withheld())
    return Row(5, condition, "the work is done by the candidate's own code");
  if (!Profiled(inputs)) return Row(3, condition, "too short to be profiled");
  const double own = inputs.profile.own_code_share();
  if (own >= kOwnShareForCredit) return Row(5, condition, "the work is done by the candidate's own code");
  if (own >= 0.5) return Row(4, condition, "most of the work is the candidate's own");
  if (own >= 0.2) return Row(3, condition, "libraries do more than half of the work");
  if (own >= kOwnShareMin) return Row(2, condition, "libraries do nearly all of the work");
  return Row(1, condition, "the candidate only calls what the reference calls");
}

// Does it use the machine?
v1::RubricScore Engineering(const RubricInputs& inputs) {
  const v1::Profile& profile = inputs.profile;
  if (!Profiled(inputs)) return Row(3, inputs.credit.condition, "too short to be profiled");
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

// How much of what the reference computes does the candidate's own code compute? Where libraries are withheld
// it has nothing else to compute it with.
v1::RubricScore OperatorCoverage(const RubricInputs& inputs) {
  if (inputs.timing.libraries_withheld())
    return Row(5, inputs.credit.condition, "all operators are in the candidate's own code");
  if (!Profiled(inputs)) return Row(3, inputs.credit.condition, "too short to be profiled");
  const std::string condition =
      absl::StrFormat("%.0f %% of samples in torch", 100 * inputs.profile.torch_share());
  const double torch = inputs.profile.torch_share();
  if (torch < 0.1) return Row(5, condition, "all operators of weight are in the candidate's own code");
  if (torch < 0.3) return Row(4, condition, "most operators are in the candidate's own code");
  if (torch < 0.6) return Row(3, condition, "about half of the work is left to torch");
  if (torch < 0.9) return Row(2, condition, "the heavy operators are left to torch");
  return Row(1, condition, "nearly everything is left to torch");
}

struct AdviceOutcome {
  bool known = true;  // whether the measurements can tell
  bool done = false;
  std::string condition;
};

AdviceOutcome Fewer(int before, int after, bool known, const char* what) {
  return {known, after < before, absl::StrFormat("%d %s, before %d", after, what, before)};
}

// Whether this profile, or the structure of the live code, shows what the advice asked for.
AdviceOutcome FollowedAdvice(const RubricInputs& inputs) {
  const v1::Profile& profile = inputs.profile;
  const SourceFacts &now = inputs.facts, &before = inputs.previous_facts;
  const bool comparable = now.valid && before.valid;
  switch (inputs.asked.advice()) {
    case v1::ADVICE_FUSE_PASSES:
      return Fewer(before.num_passes, now.num_passes, comparable, "passes");
    case v1::ADVICE_AVOID_TEMPORARY:
      return Fewer(before.num_allocations, now.num_allocations, comparable, "allocations");
    case v1::ADVICE_VECTORISE:
      return {Profiled(inputs), profile.vector_bits() >= kWideVectorBits,
              absl::StrFormat("%d-bit vectors", profile.vector_bits())};
    case v1::ADVICE_THREAD:
      return {Profiled(inputs), profile.num_threads() >= inputs.num_lane_cores,
              absl::StrFormat("%d threads", profile.num_threads())};
    case v1::ADVICE_APPROXIMATE:
      return {Profiled(inputs), profile.libc_share() <= kLibmShareMax,
              absl::StrFormat("%.0f %% of samples in libm and libc", 100 * profile.libc_share())};
    case v1::ADVICE_TILE:
      if (comparable && before.strided) {
        return {true, !now.strided,
                now.strided ? "the innermost loop is strided" : "no strided loop is left"};
      }
      return {Profiled(inputs), CeilingShare(profile) >= kNearCeilingShare || profile.vector_bits() > 0,
              absl::StrFormat("%.0f %% of the memory ceiling", 100 * CeilingShare(profile))};
    case v1::ADVICE_COMPUTE_EVERYTHING:
      return {
          true,
          inputs.credit.rule == CreditRule::kFull || inputs.credit.rule == CreditRule::kNotDistinguishable,
          inputs.credit.condition};
    default:
      // A repair is done when the program is right, and KEEP when it still is.
      return {true, true, "every output right"};
  }
}

// Skill 1: does the answer keep its contract? Skill 2: was the advice followed?
v1::RubricScore SkillCompliance(const RubricInputs& inputs) {
  if (inputs.skill != v1::SKILL_OPTIMISE) {
    if (inputs.credit.rule == CreditRule::kDelegated || inputs.credit.rule == CreditRule::kShared) {
      return Row(2, inputs.credit.condition, "the answer calls libraries where a program was asked for");
    }
    return Row(5, "entry point present, every output right", "the answer keeps its contract");
  }
  if (inputs.unchanged_copy) return Row(1, "equal to the previous program", "nothing was changed");
  const AdviceOutcome outcome = FollowedAdvice(inputs);
  if (!outcome.known)
    return Row(3, outcome.condition, "the measurements cannot tell whether the advice was followed");
  if (outcome.done) return Row(5, outcome.condition, "the advice was followed");
  if (inputs.timing.speedup_low() > 1.0)
    return Row(3, outcome.condition, "faster, but not by what was advised");
  return Row(2, outcome.condition, "the advice was not followed");
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
