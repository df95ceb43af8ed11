#include "trainer/phases/step_metrics.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/model/training/training_cost.h"
#include "trainer/evaluation/evaluation_statistics.h"
#include "trainer/update/group_statistics.h"

namespace warpsmith {
namespace {

double RewardOf(const std::vector<TransitionGroup>& groups, Skill skill) {
  double sum = 0;
  int count = 0;
  for (const TransitionGroup& group : groups) {
    if (group.task.skill != skill) continue;
    for (const Transition& transition : group.transitions) {
      if (!transition.grade.scored()) continue;
      sum += *transition.grade.reward;
      ++count;
    }
  }
  return count > 0 ? sum / count : kNotANumber;
}

int CountOf(const std::vector<TransitionGroup>& groups, Verdict verdict) {
  int count = 0;
  for (const TransitionGroup& group : groups) {
    for (const Transition& transition : group.transitions)
      count += transition.grade.verdict == verdict ? 1 : 0;
  }
  return count;
}

int CountUnscored(const std::vector<TransitionGroup>& groups) {
  const auto unscored = [](const TransitionGroup& group) {
    return ComputeGroupStatistics(group).num_scored < 2;
  };
  return static_cast<int>(std::count_if(groups.begin(), groups.end(), unscored));
}

std::string WhyUnscored(const GroupSummary& groups) {
  std::vector<std::string> counts;
  if (groups.num_unscorable > 0) counts.push_back(absl::StrCat(groups.num_unscorable, " UNSCORABLE"));
  if (groups.num_invalid_task > 0) counts.push_back(absl::StrCat(groups.num_invalid_task, " INVALID_TASK"));
  return absl::StrCat("no scored completion (", absl::StrJoin(counts, ", "), ")");
}

// Why no group was left to learn from.
std::string WhyNoGroup(const GroupSummary& groups) {
  const int num_unscored = groups.num_unscored_groups;
  const int num_zero_variance = groups.num_equal_groups - num_unscored;
  if (groups.num_equal_groups == 0) return "no group was collected";
  if (groups.num_unscored == groups.num_answers) return WhyUnscored(groups);
  if (num_unscored == 0) return absl::StrCat("all ", num_zero_variance, " groups had zero variance");
  return absl::StrCat(num_zero_variance, " of ", groups.num_equal_groups, " groups had zero variance, ",
                      num_unscored, " had fewer than two scored completions");
}

void AddSums(const std::vector<TransitionGroup>& groups, GroupSummary& summary) {
  double truncated = 0, tokens = 0;
  for (const TransitionGroup& group : groups) {
    summary.decode_seconds = std::max(summary.decode_seconds, group.decode_seconds);
    summary.grade_tail_seconds = std::max(summary.grade_tail_seconds, group.grade_tail_seconds);
    summary.num_malformed += CountMalformed(group);
    for (const Transition& transition : group.transitions) {
      truncated += transition.truncated ? 1 : 0;
      tokens += static_cast<double>(transition.answer_token_ids.size());
    }
  }
  summary.truncated_rate = summary.num_answers > 0 ? truncated / summary.num_answers : kNotANumber;
  summary.answer_tokens_mean = summary.num_answers > 0 ? tokens / summary.num_answers : kNotANumber;
}

}  // namespace

GroupSummary SummariseGroups(const CollectedGroups& collected) {
  std::vector<TransitionGroup> groups = collected.used;
  groups.insert(groups.end(), collected.equal.begin(), collected.equal.end());
  const EvaluationStatistics statistics = ComputeEvaluationStatistics(groups, 0);
  GroupSummary summary{.num_answers = statistics.num_answers,
                       .num_unscored = statistics.num_unscored,
                       .num_unscorable = CountOf(groups, Verdict::kUnscorable),
                       .num_invalid_task = CountOf(groups, Verdict::kInvalidTask),
                       .num_used_groups = static_cast<int>(collected.used.size()),
                       .num_equal_groups = static_cast<int>(collected.equal.size()),
                       .num_unscored_groups = CountUnscored(collected.equal),
                       .num_rounds = collected.num_rounds,
                       .reward_mean = statistics.mean_reward.value,
                       .reward_generate = RewardOf(groups, Skill::kGenerate),
                       .reward_optimise = RewardOf(groups, Skill::kOptimise),
                       .compile_rate = statistics.compile_rate.value,
                       .correct_rate = statistics.correct_rate.value,
                       .fast_1 = statistics.fast_1.value,
                       .geomean_speedup = statistics.geomean_speedup.value,
                       .hack_rate = statistics.hack_rate.value};
  AddSums(groups, summary);
  return summary;
}

double StepFlops(const ModelConfig& model, const std::vector<TrainingSequence>& sequences) {
  double flops = 0;
  for (const TrainingSequence& sequence : sequences) {
    flops += TrainingFlops(model, sequence.num_tokens(), sequence.num_answer_tokens());
  }
  return flops;
}

std::string WhyNoUpdate(const StepMetrics& metrics) {
  if (metrics.update.has_value()) return metrics.update->num_taken > 0 ? "" : "the gradient was not finite";
  return metrics.groups.num_used_groups > 0 ? "no completion had a token" : WhyNoGroup(metrics.groups);
}

std::string DescribeStep(int64_t step, const StepMetrics& metrics) {
  std::string text = absl::StrCat("step ", step);
  const std::string why = WhyNoUpdate(metrics);
  if (!why.empty()) absl::StrAppend(&text, ", no update: ", why);
  if (std::isfinite(metrics.groups.reward_mean)) {
    absl::StrAppendFormat(&text, ", reward %.3f, correct %.2f", metrics.groups.reward_mean,
                          metrics.groups.correct_rate);
  }
  if (why.empty()) {
    const PolicyLossSums& sums = metrics.update->sums;
    absl::StrAppendFormat(&text, ", entropy %.2f", sums.entropy / static_cast<double>(sums.num_tokens));
  }
  return text + absl::StrFormat(", %.1f s", metrics.step_seconds);
}

std::vector<NamedScalar> ToScalars(const StepMetrics& metrics) {
  const GroupSummary& groups = metrics.groups;
  const bool updated = metrics.update.has_value();
  const PolicyUpdateResult update = metrics.update.value_or(PolicyUpdateResult());
  const PolicyLossSums& sums = update.sums;
  const double tokens = sums.num_tokens > 0 ? static_cast<double>(sums.num_tokens) : kNotANumber;
  const auto of_update = [updated](double value) { return updated ? value : kNotANumber; };
  return {{"mean_reward", groups.reward_mean},
          {"reward_generate", groups.reward_generate},
          {"reward_optimise", groups.reward_optimise},
          {"compile_rate", groups.compile_rate},
          {"correct_rate", groups.correct_rate},
          {"fast_1", groups.fast_1},
          {"geomean_speedup", groups.geomean_speedup},
          {"hack_rate", groups.hack_rate},
          {"num_unscored", static_cast<double>(groups.num_unscored)},
          {"num_malformed", static_cast<double>(groups.num_malformed)},
          {"num_used_groups", static_cast<double>(groups.num_used_groups)},
          {"num_equal_groups", static_cast<double>(groups.num_equal_groups)},
          {"num_rounds", static_cast<double>(groups.num_rounds)},
          {"answer_tokens_mean", groups.answer_tokens_mean},
          {"truncated_rate", groups.truncated_rate},
          {"loss", of_update(sums.loss)},
          {"entropy", sums.entropy / tokens},
          {"kl_reference", metrics.has_reference ? sums.kl / tokens : kNotANumber},
          {"kl_old", sums.old_kl / tokens},
          {"clipped_rate", static_cast<double>(sums.num_clipped) / tokens},
          {"weight_truncated_rate", static_cast<double>(sums.num_truncated) / tokens},
          {"log_prob_difference", sums.worker_difference / tokens},
          {"log_prob_difference_p99", sums.WorkerDifferenceP99()},
          {"log_prob_difference_max", of_update(sums.worker_difference_max)},
          {"num_tokens", static_cast<double>(sums.num_tokens)},
          {"gradient_norm", of_update(update.gradient_norm)},
          {"num_skipped_updates", static_cast<double>(update.num_skipped)},
          {"learning_rate", of_update(metrics.learning_rate)},
          {"tokens_per_second",
           of_update(static_cast<double>(metrics.num_trained_tokens) / metrics.update_seconds)},
          {"mfu", of_update(metrics.training_flops / metrics.update_seconds / metrics.peak_flops)},
          {"gpu_used_gigabytes", metrics.gpu_used_gigabytes},
          {"gpu_planned_gigabytes", metrics.gpu_planned_gigabytes},
          {"rollout_seconds", metrics.rollout_seconds},
          {"decode_seconds", groups.decode_seconds},
          {"grade_tail_seconds", groups.grade_tail_seconds},
          {"gpu_wait_seconds", metrics.gpu_wait_seconds},
          {"update_seconds", of_update(metrics.update_seconds)},
          {"publish_seconds", metrics.publish_seconds.value_or(kNotANumber)},
          {"step_seconds", metrics.step_seconds}};
}

}  // namespace warpsmith
