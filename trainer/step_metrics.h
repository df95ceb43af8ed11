// The figures of one GRPO step.
#ifndef WARPSMITH_TRAINER_STEP_METRICS_H_
#define WARPSMITH_TRAINER_STEP_METRICS_H_

#include <vector>

#include "trainer/group_collector.h"
#include "trainer/policy_update.h"
#include "trainer/tensorboard_writer.h"

namespace warpsmith {

// Over all answers of a step, those of equal groups included; rates are of scored answers.
struct GroupSummary {
  int num_answers = 0;
  int num_unscored = 0;   // malformed ones included
  int num_malformed = 0;  // dropped where they arrived: see Transition::malformed
  int num_used_groups = 0;
  int num_equal_groups = 0;
  int num_rounds = 0;
  double reward_mean = 0;
  double reward_generate = 0;  // by skill; not a number without an answer of the skill, as the next
  double reward_optimise = 0;
  double compile_rate = 0;
  double correct_rate = 0;
  double fast_1 = 0;
  double geomean_speedup = 0;  // of correct answers; not a number without one
  double hack_rate = 0;
  double truncated_rate = 0;  // of all answers: ended by the limit of tokens
  double answer_tokens_mean = 0;
  double decode_seconds = 0;  // summed over groups
  double grade_tail_seconds = 0;
};

GroupSummary SummariseGroups(const CollectedGroups& groups);

struct StepMetrics {
  GroupSummary groups;
  PolicyUpdateResult update;
  double learning_rate = 0;
  double rollout_seconds = 0;  // sampling and grading, refills included
  double update_seconds = 0;
  double publish_seconds = 0;
  double step_seconds = 0;

  double entropy_mean() const;  // nats a token
};

// In the order in which a reader wants them.
std::vector<NamedScalar> ToScalars(const StepMetrics& metrics);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_STEP_METRICS_H_
