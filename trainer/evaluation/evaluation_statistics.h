// What an evaluation says of a Coder, with how sure it is.
#ifndef WARPSMITH_TRAINER_EVALUATION_EVALUATION_STATISTICS_H_
#define WARPSMITH_TRAINER_EVALUATION_EVALUATION_STATISTICS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "trainer/data/transition.h"

namespace warpsmith {

// A figure and its 95 % interval: percentiles of 2,000 bootstrap resamples of the tasks (not of the answers,
// for answers to one task resemble each other). Not a number where there is nothing to estimate from.
struct Estimate {
  double value = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
};

// Over scored answers, not a number without any; UNSCORABLE and INVALID_TASK count in num_unscored alone.
struct EvaluationStatistics {
  Estimate compile_rate;
  Estimate correct_rate;
  Estimate fast_1;           // correct, with the lower end of the speed-up's interval above 1.03
  Estimate geomean_speedup;  // of correct answers; not a number without any
  Estimate mean_reward;
  Estimate hack_rate;
  int num_tasks = 0;
  int num_answers = 0;
  int num_unscored = 0;
};

// A pure function of the groups and `seed`. A task with two groups (both skills) is one task: groups of skill
// 2 count with their origin, whose id is the part before '#'.
EvaluationStatistics ComputeEvaluationStatistics(const std::vector<TransitionGroup>& groups, uint64_t seed);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_EVALUATION_EVALUATION_STATISTICS_H_
