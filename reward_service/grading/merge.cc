#include "reward_service/grading/merge.h"

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "reward_service/measure/reference_form.h"
#include "reward_service/program/candidate_language.h"
#include "reward_service/scoring/credit.h"
#include "reward_service/scoring/feedback.h"
#include "reward_service/scoring/formulas.h"
#include "reward_service/scoring/tables.h"

namespace warpsmith {
namespace {

const CandidateLanguage& OwnLanguage(const PreparedRequest& prepared) {
  return LanguageOf(prepared.request.candidate().language());
}

bool IsUnchangedCopy(const PreparedRequest& prepared) {
  const CandidateLanguage& language = OwnLanguage(prepared);
  const std::string& previous = prepared.request.task().previous_source();
  return language.normalise(prepared.source) == language.normalise(previous);
}

v1::Rubric RubricOf(const PreparedRequest& prepared, const v1::Measurement& measurement,
                    const v1::Grade& grade) {
  if (grade.verdict() != v1::VERDICT_CORRECT) return NeutralRubric();
  const v1::Task& task = prepared.request.task();
  RubricInputs inputs;
  inputs.skill = task.skill();
  inputs.timing = grade.timing();
  inputs.profile = grade.profile();
  inputs.credit = grade.credit();
  inputs.num_lane_cores = measurement.advice_facts().num_lane_cores();
  inputs.kernels = KernelFactsOf(grade);
  if (task.skill() == v1::SKILL_OPTIMISE) {
    inputs.unchanged_copy = IsUnchangedCopy(prepared);
    inputs.asked = task.feedback();
  }
  return ComputeRubric(inputs);
}

// Over what torch.compile makes of the reference, where that was measured.
std::optional<double> CompileSpeedup(const v1::Timing& timing) {
  for (const v1::Baseline& baseline : timing.baselines()) {
    if (baseline.name() == kTorchCompileName && baseline.unavailable().empty()) return baseline.speedup();
  }
  return std::nullopt;
}

void SetReward(const PreparedRequest& prepared, v1::Grade* grade) {
  RewardInputs inputs;
  inputs.verdict = grade->verdict();
  inputs.compiled = grade->compile().succeeded() || !grade->compile().attempted();
  inputs.speedup = grade->timing().speedup();
  inputs.credited_speedup = grade->credit().speedup();
  inputs.library_share = grade->credit().library_share();
  inputs.rubric_total = grade->rubric().total();
  inputs.skill = prepared.request.task().skill();
  inputs.compile_speedup = CompileSpeedup(grade->timing());
  if (grade->verdict() == v1::VERDICT_NO_CODE) inputs.compiled = false;
  absl::StatusOr<v1::Reward> reward = ComputeReward(prepared.request.formula(), inputs);
  WS_CHECK(reward.ok()) << "the door checks formulas: " << reward.status().message();
  *grade->mutable_reward() = *std::move(reward);
}

// A measured candidate without a finite reward is our failure, not the candidate's.
void DemoteWithoutReward(v1::Grade* grade) {
  const bool expected =
      grade->verdict() == v1::VERDICT_UNSCORABLE || grade->verdict() == v1::VERDICT_INVALID_TASK;
  if (expected || grade->reward().has_value()) return;
  grade->set_verdict(v1::VERDICT_UNSCORABLE);
  grade->set_verdict_reason(
      absl::StrCat("reward formula ", grade->reward().formula(), " gave no finite value"));
}

}  // namespace

v1::Measurement Unscorable(const std::string& reason) {
  v1::Measurement measurement;
  measurement.mutable_grade()->set_verdict(v1::VERDICT_UNSCORABLE);
  measurement.mutable_grade()->set_verdict_reason(Escape(reason, 512));
  return measurement;
}

v1::Grade MergeGrade(const PreparedRequest& prepared, const v1::Measurement& measurement,
                     const LlmOpinion* opinion) {
  const v1::Task& task = prepared.request.task();
  v1::Grade grade = measurement.grade();
  grade.set_request_id(prepared.request.request_id());
  grade.set_task_id(task.id());
  grade.set_source(prepared.source);
  grade.set_source_sha256(prepared.source_sha256);
  if (grade.verdict() == v1::VERDICT_CORRECT) *grade.mutable_credit() = ComputeCredit(grade.timing(), task);
  const SourceFacts facts = OwnLanguage(prepared).read_facts(prepared.source);
  *grade.mutable_rubric() = RubricOf(prepared, measurement, grade);
  if (opinion != nullptr && grade.verdict() == v1::VERDICT_CORRECT) {
    LowerRubric(*opinion, grade.mutable_rubric());
  }
  SetReward(prepared, &grade);
  DemoteWithoutReward(&grade);
  *grade.mutable_feedback() = ComputeFeedback(grade, facts, measurement.advice_facts());
  return grade;
}

}  // namespace warpsmith
