// The figures of one GRPO step.
#ifndef WARPSMITH_TRAINER_PHASES_STEP_METRICS_H_
#define WARPSMITH_TRAINER_PHASES_STEP_METRICS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "trainer/phases/group_collector.h"
#include "trainer/run_folder/tensorboard_writer.h"
#include "trainer/update/policy_update.h"

namespace warpsmith {

// Over all answers of a step, those of equal groups included; rates are of scored answers. A figure that does
// not exist is not a number.
struct GroupSummary {
  int num_answers = 0;
  int num_unscored = 0;    // malformed ones included
  int num_malformed = 0;   // dropped where they arrived: see Transition::malformed
  int num_unscorable = 0;  // by verdict
  int num_invalid_task = 0;
  int num_used_groups = 0;
  int num_equal_groups = 0;
  int num_unscored_groups = 0;  // of the equal ones: fewer than two scored answers
  int num_rounds = 0;
  double reward_mean = 0;
  double reward_generate = 0;  // by skill
  double reward_optimise = 0;
  double compile_rate = 0;
  double correct_rate = 0;
  double fast_1 = 0;
  double geomean_speedup = 0;  // of correct answers
  double hack_rate = 0;
  double truncated_rate = 0;  // of all answers: ended by the limit of tokens
  double answer_tokens_mean = 0;
  double decode_seconds = 0;      // of the slowest group, from its first token to its last
  double grade_tail_seconds = 0;  // of the slowest group, from its last token to its last grade
};

GroupSummary SummariseGroups(const CollectedGroups& groups);

inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

struct StepMetrics {
  GroupSummary groups;
  std::optional<PolicyUpdateResult> update;  // nothing where there was nothing to learn from
  bool has_reference = false;                // whether the update measured the distance to a reference model
  double learning_rate = 0;
  double rollout_seconds = 0;  // sampling and grading, refills included
  double update_seconds = 0;
  double gpu_wait_seconds = kNotANumber;  // before the update, for the GPU that trains
  std::optional<double> publish_seconds;  // nothing where the weights stayed as they were
  double step_seconds = 0;
  // Sums over all optimiser steps, prompts included; model FLOPs (core/model/training/training_cost.h).
  int64_t num_trained_tokens = 0;
  double training_flops = 0;
  // Figures of the GPU that trains; not a number in training on a CPU.
  double peak_flops = kNotANumber;
  double gpu_used_gigabytes = kNotANumber;  // of all processes
  double gpu_planned_gigabytes = kNotANumber;
};

// Returns the operations of a step on `sequences` (TrainingFlops), with the rows of the answers' tokens scored.
double StepFlops(const ModelConfig& model, const std::vector<TrainingSequence>& sequences);

// Why the step left the weights as they were, e.g. "all 8 groups had zero variance"; empty if it did not.
std::string WhyNoUpdate(const StepMetrics& metrics);

// The step in a few words and figures, those left out that do not exist: "step 3, reward 1.204, correct 0.81,
// entropy 0.52, 3.1 s", or with the reason why it made no update.
std::string DescribeStep(int64_t step, const StepMetrics& metrics);

// In the order in which a reader wants them. What a step without an update does not have is not a number.
std::vector<NamedScalar> ToScalars(const StepMetrics& metrics);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_PHASES_STEP_METRICS_H_
