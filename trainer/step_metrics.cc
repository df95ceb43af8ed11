#include "trainer/step_metrics.h"

#include <algorithm>
#include <limits>

#include "trainer/evaluation_statistics.h"
#include "trainer/group_statistics.h"

namespace warpsmith {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

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
  return count > 0 ? sum / count : kNone;
}

void AddSums(const std::vector<TransitionGroup>& groups, GroupSummary& summary) {
  double truncated = 0, tokens = 0;
  for (const TransitionGroup& group : groups) {
    summary.decode_seconds += group.decode_seconds;
    summary.grade_tail_seconds += group.grade_tail_seconds;
    summary.num_malformed += CountMalformed(group);
    for (const Transition& transition : group.transitions) {
      truncated += transition.truncated ? 1 : 0;
      tokens += static_cast<double>(transition.answer_token_ids.size());
    }
  }
  const double count = std::max(summary.num_answers, 1);
  summary.truncated_rate = truncated / count;
  summary.answer_tokens_mean = tokens / count;
}

}  // namespace

GroupSummary SummariseGroups(const CollectedGroups& collected) {
  std::vector<TransitionGroup> groups = collected.used;
  groups.insert(groups.end(), collected.equal.begin(), collected.equal.end());
  const EvaluationStatistics statistics = ComputeEvaluationStatistics(groups, 0);
  GroupSummary summary{
      .num_answers = statistics.num_answers,
      .num_unscored = statistics.num_unscored,
      .num_used_groups = static_cast<int>(collected.used.size()),
      .num_equal_groups = static_cast<int>(collected.equal.size()),
      .num_rounds = collected.num_rounds,
      .reward_mean = statistics.mean_reward.value,
      .reward_generate = RewardOf(groups, Skill::kGenerate),
      .reward_optimise = RewardOf(groups, Skill::kOptimise),
      .compile_rate = statistics.compile_rate.value,
      .correct_rate = statistics.correct_rate.value,
      .fast_1 = statistics.fast_1.value,
      .geomean_speedup = statistics.correct_rate.value > 0 ? statistics.geomean_speedup.value : kNone,
      .hack_rate = statistics.hack_rate.value};
  AddSums(groups, summary);
  return summary;
}

double StepMetrics::entropy_mean() const {
  return update.sums.entropy / static_cast<double>(std::max<int64_t>(1, update.sums.num_tokens));
}

std::vector<NamedScalar> ToScalars(const StepMetrics& metrics) {
  const GroupSummary& groups = metrics.groups;
  const PolicyLossSums& sums = metrics.update.sums;
  const double tokens = static_cast<double>(std::max<int64_t>(1, sums.num_tokens));
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
          {"loss", sums.loss},
          {"entropy", sums.entropy / tokens},
          {"kl_reference", sums.kl / tokens},
          {"kl_old", sums.old_kl / tokens},
          {"clipped_rate", static_cast<double>(sums.num_clipped) / tokens},
          {"weight_truncated_rate", static_cast<double>(sums.num_truncated) / tokens},
          {"log_prob_difference_max", sums.worker_difference_max},
          {"num_tokens", static_cast<double>(sums.num_tokens)},
          {"gradient_norm", metrics.update.gradient_norm},
          {"num_skipped_updates", static_cast<double>(metrics.update.num_skipped)},
          {"learning_rate", metrics.learning_rate},
          {"rollout_seconds", metrics.rollout_seconds},
          {"update_seconds", metrics.update_seconds},
          {"publish_seconds", metrics.publish_seconds},
          {"step_seconds", metrics.step_seconds}};
}

}  // namespace warpsmith
