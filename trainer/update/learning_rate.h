// The learning rate by step.
#ifndef WARPSMITH_TRAINER_UPDATE_LEARNING_RATE_H_
#define WARPSMITH_TRAINER_UPDATE_LEARNING_RATE_H_

#include <cstdint>

namespace warpsmith {

// Rises linearly over `num_warmup_steps`, then stays, or falls linearly with `progress`.
struct LearningRateSchedule {
  double peak = 1e-3;
  int64_t num_warmup_steps = 0;
  double final_fraction = 1.0;  // of the peak, reached at the end; 1: no decay

  // For step `step`, from 0. `progress` in [0, 1] is the share of the budget (steps, tokens or time) that is
  // spent.
  double At(int64_t step, double progress) const;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_LEARNING_RATE_H_
