// How good the Coder is on tasks it does not learn from.
#ifndef WARPSMITH_TRAINER_EVALUATION_EVALUATION_H_
#define WARPSMITH_TRAINER_EVALUATION_EVALUATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "trainer/data/feedback_pool.h"
#include "trainer/data/group_generator.h"
#include "trainer/evaluation/evaluation_statistics.h"

namespace warpsmith {

struct EvaluationOptions {
  int num_samples = 8;
  Sampling sampling;      // of the sampled half; the greedy half has temperature 0
  std::string formula;    // of rewards; empty: the reward service's default
  uint64_t run_seed = 0;  // the same samples before and after, but for the weights
  TaskFilter may_make;    // of skill-2 tasks
  // Of all groups of a set of tasks; how many are wanted is a guess until the skill-2 tasks are made.
  GroupsArrived on_group;
};

// Tasks of one set. Skill-2 tasks are made from the Coder's own answers the first time, and kept from then
// on, so that before and after see the same.
struct EvaluationTasks {
  std::vector<Task> generate;
  std::vector<Task> optimise;
};

// What came of one set of tasks. Groups are for the dump.
struct SplitEvaluation {
  EvaluationStatistics sampled;
  EvaluationStatistics greedy;
  EvaluationStatistics generate;  // the sampled answers by skill
  EvaluationStatistics optimise;
  std::vector<TransitionGroup> sampled_groups;
  std::vector<TransitionGroup> greedy_groups;
};

struct Evaluation {
  SplitEvaluation held_out;
  SplitEvaluation unseen_operator;
};

// Samples and grades all of `tasks` with policy `policy_version`; fills tasks.optimise first if it is empty.
// `name`
// ("before", "after", ...) goes into request ids.
absl::StatusOr<SplitEvaluation> EvaluateSplit(EvaluationTasks& tasks, const EvaluationOptions& options,
                                              uint64_t policy_version, const std::string& name,
                                              GroupGenerator& generator);

// Returns one skill-2 task for each skill-1 group that has a usable answer: its first sample with code and feedback of
// which a task may be made.
std::vector<Task> MakeEvaluationTasks(const std::vector<TransitionGroup>& sampled_groups,
                                      const TaskFilter& may_make = {});

// {"compile_rate": ..., ..., "compile_rate_interval": [low, high], ..., "greedy": {...}, "unseen_operator":
// {...}, "by_skill": {"generate": {...}, "optimise": {...}}}. A figure that does not exist is null.
nlohmann::ordered_json EvaluationToJson(const Evaluation& evaluation);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_EVALUATION_EVALUATION_H_
