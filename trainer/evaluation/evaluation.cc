#include "trainer/evaluation/evaluation.h"

#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "trainer/data/seeds.h"

namespace warpsmith {
namespace {

using nlohmann::ordered_json;

std::vector<TransitionGroup> OfSkill(const std::vector<TransitionGroup>& groups, Skill skill) {
  std::vector<TransitionGroup> chosen;
  for (const TransitionGroup& group : groups) {
    if (group.task.skill == skill) chosen.push_back(group);
  }
  return chosen;
}

void Append(std::vector<TransitionGroup> more, std::vector<TransitionGroup>& groups) {
  std::move(more.begin(), more.end(), std::back_inserter(groups));
}

// Null for what JSON has no number for.
ordered_json Number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(); }

ordered_json StatisticsToJson(const EvaluationStatistics& statistics) {
  const std::pair<const char*, const Estimate*> figures[] = {{"compile_rate", &statistics.compile_rate},
                                                             {"correct_rate", &statistics.correct_rate},
                                                             {"fast_1", &statistics.fast_1},
                                                             {"geomean_speedup", &statistics.geomean_speedup},
                                                             {"mean_reward", &statistics.mean_reward},
                                                             {"hack_rate", &statistics.hack_rate}};
  ordered_json json;
  for (const auto& [name, estimate] : figures) json[name] = Number(estimate->value);
  for (const auto& [name, estimate] : figures) {
    json[absl::StrCat(name, "_interval")] = {Number(estimate->low), Number(estimate->high)};
  }
  json["num_tasks"] = statistics.num_tasks;
  json["num_answers"] = statistics.num_answers;
  json["num_unscored"] = statistics.num_unscored;
  return json;
}

// Counts the groups of the several requests of one evaluation.
class GroupCount {
 public:
  explicit GroupCount(const GroupsArrived& report) : report_(report) {}

  // Before a request: sampled once and decoded greedily once, as far as the tasks are known.
  void Expect(const EvaluationTasks& tasks, bool optimise_tasks_are_made) {
    const size_t num_generate = tasks.generate.size();
    const size_t num_optimise = optimise_tasks_are_made ? tasks.optimise.size() : num_generate;
    num_wanted_ = static_cast<int>(2 * (num_generate + num_optimise));
  }
  void Arrived(int num_arrived) const {
    if (report_) report_(num_before_ + num_arrived, num_wanted_);
  }
  void Finished(const GenerateRequest& request) { num_before_ += static_cast<int>(request.tasks.size()); }

 private:
  const GroupsArrived& report_;
  int num_before_ = 0;  // of the requests that have ended
  int num_wanted_ = 0;
};

ordered_json SplitToJson(const SplitEvaluation& split) {
  ordered_json json = StatisticsToJson(split.sampled);
  json["greedy"] = StatisticsToJson(split.greedy);
  json["by_skill"] = {{"generate", StatisticsToJson(split.generate)},
                      {"optimise", StatisticsToJson(split.optimise)}};
  return json;
}

}  // namespace

absl::StatusOr<SplitEvaluation> EvaluateSplit(EvaluationTasks& tasks, const EvaluationOptions& options,
                                              uint64_t policy_version, const std::string& name,
                                              GroupGenerator& generator) {
  SplitEvaluation split;
  if (tasks.generate.empty()) return split;
  GenerateRequest request{.id = absl::StrCat("run-", options.run_seed, "-", name, "-generate"),
                          .tasks = tasks.generate,
                          .num_samples = options.num_samples,
                          .sampling = options.sampling,
                          .seed = DeriveSeed(options.run_seed, SeedPurpose::kEvaluation),
                          .policy_version = policy_version,
                          .formula = options.formula};
  GroupCount count(options.on_group);
  count.Expect(tasks, !tasks.optimise.empty());
  request.on_group = [&](int num_arrived, int) { count.Arrived(num_arrived); };
  ASSIGN_OR_RETURN(split.sampled_groups, generator.Generate(request));
  count.Finished(request);
  if (tasks.optimise.empty()) tasks.optimise = MakeEvaluationTasks(split.sampled_groups, options.may_make);
  count.Expect(tasks, true);
  if (!tasks.optimise.empty()) {
    request.id = absl::StrCat("run-", options.run_seed, "-", name, "-optimise");
    request.tasks = tasks.optimise;
    ASSIGN_OR_RETURN(std::vector<TransitionGroup> groups, generator.Generate(request));
    count.Finished(request);
    Append(std::move(groups), split.sampled_groups);
  }
  request.id = absl::StrCat("run-", options.run_seed, "-", name, "-greedy");
  request.tasks = tasks.generate;
  request.tasks.insert(request.tasks.end(), tasks.optimise.begin(), tasks.optimise.end());
  request.num_samples = 1;
  request.sampling.temperature = 0;
  ASSIGN_OR_RETURN(split.greedy_groups, generator.Generate(request));

  const uint64_t seed = DeriveSeed(options.run_seed, SeedPurpose::kBootstrap);
  split.sampled = ComputeEvaluationStatistics(split.sampled_groups, seed);
  split.greedy = ComputeEvaluationStatistics(split.greedy_groups, seed);
  split.generate = ComputeEvaluationStatistics(OfSkill(split.sampled_groups, Skill::kGenerate), seed);
  split.optimise = ComputeEvaluationStatistics(OfSkill(split.sampled_groups, Skill::kOptimise), seed);
  return split;
}

std::vector<Task> MakeEvaluationTasks(const std::vector<TransitionGroup>& sampled_groups,
                                      const TaskFilter& may_make) {
  std::vector<Task> tasks;
  for (const TransitionGroup& group : sampled_groups) {
    if (group.task.skill != Skill::kGenerate) continue;
    for (const Transition& transition : group.transitions) {
      if (!CanBeOptimised(transition.grade)) continue;
      Task task = MakeOptimiseTask(group.task, transition.grade);
      if (may_make && !may_make(task)) continue;
      tasks.push_back(std::move(task));
      break;
    }
  }
  return tasks;
}

ordered_json EvaluationToJson(const Evaluation& evaluation) {
  ordered_json json = SplitToJson(evaluation.held_out);
  json["unseen_operator"] = SplitToJson(evaluation.unseen_operator);
  return json;
}

}  // namespace warpsmith
