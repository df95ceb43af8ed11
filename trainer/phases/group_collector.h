// From tasks to the groups of one GRPO step.
#ifndef WARPSMITH_TRAINER_PHASES_GROUP_COLLECTOR_H_
#define WARPSMITH_TRAINER_PHASES_GROUP_COLLECTOR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/configuration.h"
#include "trainer/data/feedback_pool.h"
#include "trainer/data/group_generator.h"
#include "trainer/data/task_source.h"
#include "trainer/data/training_sequence.h"
#include "trainer/run_folder/run_progress.h"

namespace warpsmith {

// The groups of a step in the order of their tasks, whatever order they arrived in.
struct CollectedGroups {
  std::vector<TransitionGroup> used;   // told apart by their rewards
  std::vector<TransitionGroup> equal;  // dropped, for they say nothing
  int num_rounds = 0;
};

// Draws tasks of both skills, asks for their groups, drops and replaces equal ones, and feeds the pool. Kept
// by rank 0 alone; its state is saved in and restored from GrpoProgress.
class GroupCollector {
 public:
  // `generator` outlives this. `run_seed` decides tasks and samples. `optimise_tasks`, of skill 2, take turns
  // with those of the pool, which takes what `may_make` allows; there may be none.
  GroupCollector(std::vector<Task> tasks, const GrpoSection& options, uint64_t run_seed,
                 GroupGenerator* generator, std::vector<Task> optimise_tasks = {}, TaskFilter may_make = {});

  // Groups of step `step`, counted from 1, under policy `policy_version`; fewer than wanted, perhaps none,
  // when the refills are used up. `on_group` is told of the groups of all rounds together.
  absl::StatusOr<CollectedGroups> Collect(int64_t step, uint64_t policy_version,
                                          const GroupsArrived& on_group = {});

  void Save(GrpoProgress& progress) const;
  void Restore(const GrpoProgress& progress);

 private:
  std::vector<Task> DrawTasks(int count);
  Task DrawTask();
  std::optional<Task> DrawOptimiseTask();

  const GrpoSection options_;
  const uint64_t run_seed_;
  GroupGenerator* const generator_;
  TaskRounds source_;
  std::optional<TaskRounds> optimise_source_;  // where there are such tasks
  FeedbackPool pool_;
  uint64_t num_draws_ = 0;
};

// The scored transitions of a group as training sequences with their advantages, and the advantages of all
// transitions in `advantages`. With `permute_rewards` the rewards change places among the scored, as `seed`
// says: the control that shows what noise alone would learn.
std::vector<TrainingSequence> SequencesOf(const TransitionGroup& group, const GrpoSection& options,
                                          uint64_t seed, std::vector<std::optional<double>>& advantages);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_PHASES_GROUP_COLLECTOR_H_
