#include "trainer/update/learning_rate.h"

#include <algorithm>

namespace warpsmith {

double LearningRateSchedule::At(int64_t step, double progress) const {
  const double warmup = step < num_warmup_steps
                            ? static_cast<double>(step + 1) / static_cast<double>(num_warmup_steps + 1)
                            : 1.0;
  const double decay = 1.0 - (1.0 - final_fraction) * std::clamp(progress, 0.0, 1.0);
  return peak * warmup * decay;
}

}  // namespace warpsmith
