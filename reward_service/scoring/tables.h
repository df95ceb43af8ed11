// The rubric: four dimensions of StitchCUDA (arXiv 2603.02637), each a table from measured conditions to a
// score.
#ifndef WARPSMITH_REWARD_SERVICE_SCORING_TABLES_H_
#define WARPSMITH_REWARD_SERVICE_SCORING_TABLES_H_

#include <optional>

#include "reward_service/scoring/credit.h"
#include "reward_service/scoring/kernel_facts.h"
#include "warpsmith/v1/grade.pb.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

constexpr char kRubricTables[] = "tables-v1";

// What the tables look at: measurements, and of the text only whether it is a copy.
struct RubricInputs {
  v1::Skill skill = v1::SKILL_GENERATE;
  v1::Timing timing;
  v1::Profile profile;
  v1::Credit credit;
  // Skill 2 only.
  bool unchanged_copy = false;  // equal to the previous program after normalisation
  v1::Feedback
      asked;  // of the previous program; the speed-up in its evidence is what this one is held against
  int num_lane_cores = 1;
  // Of a program that was measured on a GPU, and of no other.
  std::optional<KernelFacts> kernels;
};

// The rubric of a CORRECT candidate. The same inputs always give the same scores.
v1::Rubric ComputeRubric(const RubricInputs& inputs);

// 3/3/3/3, for a candidate to which the tables do not apply.
v1::Rubric NeutralRubric();

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SCORING_TABLES_H_
