#include "trainer/group_collector.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "trainer/advantages.h"
#include "trainer/group_statistics.h"
#include "trainer/seeds.h"

namespace warpsmith {
namespace {

constexpr int kDrawsPerTaskMax = 8;

constexpr uint64_t kRoundsMax = 1024;  // of a step; more than the configuration allows

// Whether draw number `draw` is of skill 2, so that any number of draws has `share` of them, evenly spread.
bool WantsOptimise(uint64_t draw, double share) {
  return std::floor(static_cast<double>(draw + 1) * share) > std::floor(static_cast<double>(draw) * share);
}

// Moves the rewards of scored transitions to each other's places.
void PermuteRewards(TransitionGroup& group, uint64_t seed) {
  std::vector<int> scored;
  for (size_t i = 0; i < group.transitions.size(); ++i) {
    if (group.transitions[i].grade.scored()) scored.push_back(static_cast<int>(i));
  }
  const std::vector<uint32_t> order = SeededPermutation(scored.size(), seed);
  const std::vector<Transition> before = group.transitions;
  for (size_t i = 0; i < scored.size(); ++i) {
    group.transitions[scored[i]].grade.reward = before[scored[order[i]]].grade.reward;
  }
}

}  // namespace

GroupCollector::GroupCollector(std::vector<Task> tasks, const GrpoSection& options, uint64_t run_seed,
                               GroupGenerator* generator)
    : options_(options),
      run_seed_(run_seed),
      generator_(generator),
      source_(std::move(tasks), DeriveSeed(run_seed, SeedPurpose::kTaskOrder),
              {options.window_tasks, options.window_passes}),
      pool_(options.feedback_pool_size) {}

absl::StatusOr<CollectedGroups> GroupCollector::Collect(int64_t step, uint64_t policy_version) {
  CollectedGroups collected;
  for (int round = 0; round <= options_.num_refills; ++round) {
    const int num_wanted = options_.num_tasks - static_cast<int>(collected.used.size());
    if (num_wanted == 0) break;
    const uint64_t round_index = static_cast<uint64_t>(step) * kRoundsMax + round;
    const GenerateRequest request{.id = absl::StrCat("run-", run_seed_, "-step-", step, "-round-", round),
                                  .tasks = DrawTasks(num_wanted),
                                  .num_samples = options_.num_samples,
                                  .sampling = options_.sampling,
                                  .seed = DeriveSeed(run_seed_, SeedPurpose::kRollout, round_index),
                                  .policy_version = policy_version};
    ASSIGN_OR_RETURN(std::vector<TransitionGroup> groups, generator_->Generate(request));
    ++collected.num_rounds;
    for (TransitionGroup& group : groups) {
      ShareGrades(group);
      pool_.AddFrom(group, DeriveSeed(run_seed_, SeedPurpose::kFeedbackChoice, round_index));
      const bool equal = CountsAsEqual(ComputeGroupStatistics(group), options_.equal_spread);
      (equal ? collected.equal : collected.used).push_back(std::move(group));
    }
  }
  return collected;
}

void GroupCollector::Save(GrpoProgress& progress) const {
  progress.task_cursor = source_.cursor();
  progress.num_draws = num_draws_;
  progress.feedback_tasks = pool_.tasks();
}

void GroupCollector::Restore(const GrpoProgress& progress) {
  source_.set_cursor(progress.task_cursor);
  num_draws_ = progress.num_draws;
  pool_.Restore(progress.feedback_tasks);
}

// No task twice, for its samples would be equal: the end of one pass over the tasks and the beginning of the
// next may hold the same one, and so may the pool. Fewer than `count` when there are not so many different
// ones.
std::vector<Task> GroupCollector::DrawTasks(int count) {
  std::vector<Task> tasks;
  std::set<std::string> ids;
  for (int draw = 0; static_cast<int>(tasks.size()) < count && draw < kDrawsPerTaskMax * count; ++draw) {
    std::optional<Task> task;
    if (WantsOptimise(num_draws_, options_.optimise_share)) task = pool_.Take();
    if (!task.has_value()) task = source_.Next();
    if (!ids.insert(task->id).second) continue;
    ++num_draws_;
    tasks.push_back(*std::move(task));
  }
  return tasks;
}

std::vector<TrainingSequence> SequencesOf(const TransitionGroup& group, const GrpoSection& options,
                                          uint64_t seed, std::vector<std::optional<double>>& advantages) {
  TransitionGroup rewarded = group;
  if (options.permute_rewards) PermuteRewards(rewarded, DeriveSeed(seed, SeedPurpose::kPermutation));
  advantages = ComputeAdvantages(rewarded, options.advantage);
  std::vector<TrainingSequence> sequences;
  for (size_t i = 0; i < group.transitions.size(); ++i) {
    const Transition& transition = group.transitions[i];
    if (!advantages[i].has_value() || transition.answer_token_ids.empty()) continue;
    TrainingSequence& sequence = sequences.emplace_back();
    sequence.tokens = transition.prompt_token_ids;
    sequence.num_prompt_tokens = static_cast<int32_t>(transition.prompt_token_ids.size());
    sequence.tokens.insert(sequence.tokens.end(), transition.answer_token_ids.begin(),
                           transition.answer_token_ids.end());
    sequence.worker_log_probs = transition.log_probs;
    sequence.advantage = *advantages[i];
  }
  return sequences;
}

}  // namespace warpsmith
