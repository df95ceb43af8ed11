#include "trainer/phases/group_collector.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "trainer/data/seeds.h"
#include "trainer/update/advantages.h"
#include "trainer/update/group_statistics.h"

namespace warpsmith {
namespace {

constexpr int kDrawsPerTaskMax = 8;
constexpr int kFeedbackPoolSize = 256;  // skill-2 tasks that wait to be drawn

constexpr uint64_t kRoundsMax = 1024;  // of a step; more than the configuration allows

// Of the first `draw` draws those of skill 2: `share` of them, evenly spread.
uint64_t NumOptimise(uint64_t draw, double share) {
  return static_cast<uint64_t>(std::floor(static_cast<double>(draw) * share));
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
                               GroupGenerator* generator, std::vector<Task> optimise_tasks,
                               TaskFilter may_make)
    : options_(options),
      run_seed_(run_seed),
      generator_(generator),
      source_(std::move(tasks), DeriveSeed(run_seed, SeedPurpose::kTaskOrder),
              {options.window_tasks, options.window_passes}),
      pool_(kFeedbackPoolSize, std::move(may_make)) {
  if (optimise_tasks.empty()) return;
  optimise_source_.emplace(std::move(optimise_tasks), DeriveSeed(run_seed, SeedPurpose::kOptimiseOrder),
                           TaskWindow{options.window_tasks, options.window_passes});
}

absl::StatusOr<CollectedGroups> GroupCollector::Collect(int64_t step, uint64_t policy_version,
                                                        const GroupsArrived& on_group) {
  WS_CHECK(step >= 1) << step;
  CollectedGroups collected;
  int num_before = 0;  // groups of the rounds before
  for (int round = 0; round <= options_.num_refills; ++round) {
    const int num_wanted = options_.num_tasks - static_cast<int>(collected.used.size());
    if (num_wanted == 0) break;
    const uint64_t round_index = static_cast<uint64_t>(step - 1) * kRoundsMax + round;
    GenerateRequest request{.id = absl::StrCat("run-", run_seed_, "-step-", step, "-round-", round),
                            .tasks = DrawTasks(num_wanted),
                            .num_samples = options_.num_samples,
                            .sampling = options_.sampling,
                            .seed = DeriveSeed(run_seed_, SeedPurpose::kRollout, round_index),
                            .policy_version = policy_version,
                            .formula = options_.formula};
    request.on_group = [&](int num_arrived, int num_asked) {
      if (on_group) on_group(num_before + num_arrived, num_before + num_asked);
    };
    ASSIGN_OR_RETURN(std::vector<TransitionGroup> groups, generator_->Generate(request));
    num_before += static_cast<int>(groups.size());
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
  if (optimise_source_.has_value()) progress.optimise_cursor = optimise_source_->cursor();
  progress.num_draws = num_draws_;
  progress.feedback_tasks = pool_.tasks();
}

void GroupCollector::Restore(const GrpoProgress& progress) {
  source_.set_cursor(progress.task_cursor);
  if (optimise_source_.has_value()) optimise_source_->set_cursor(progress.optimise_cursor);
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
    Task task = DrawTask();
    // A short file of skill 2 would give the same again until the draws are used up.
    const bool drawn_before = optimise_source_.has_value() && ids.count(task.id) > 0;
    if (drawn_before && task.skill == Skill::kOptimise) task = source_.Next();
    if (!ids.insert(task.id).second) continue;
    ++num_draws_;
    tasks.push_back(std::move(task));
  }
  return tasks;
}

Task GroupCollector::DrawTask() {
  const double share = options_.optimise_share;
  if (NumOptimise(num_draws_ + 1, share) > NumOptimise(num_draws_, share)) {
    if (std::optional<Task> task = DrawOptimiseTask(); task.has_value()) return *std::move(task);
  }
  return source_.Next();
}

// From file and pool in turn: the one shows what this Coder never wrote, the other what it writes now.
std::optional<Task> GroupCollector::DrawOptimiseTask() {
  const bool pools_turn = NumOptimise(num_draws_, options_.optimise_share) % 2 == 1;
  if (!optimise_source_.has_value()) return pool_.Take();
  if (pools_turn && pool_.size() > 0) return pool_.Take();
  return optimise_source_->Next();
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
