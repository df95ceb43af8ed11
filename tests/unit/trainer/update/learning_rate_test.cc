#include "trainer/update/learning_rate.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("the rate rises over the warm-up and never starts at zero") {
  const LearningRateSchedule schedule{.peak = 1.0, .num_warmup_steps = 3};
  CHECK(schedule.At(0, 0) == Approx(0.25));
  CHECK(schedule.At(2, 0) == Approx(0.75));
  CHECK(schedule.At(3, 0) == 1.0);
  CHECK(schedule.At(1000, 1) == 1.0);
}

TEST_CASE("the rate falls with the budget that is spent") {
  const LearningRateSchedule schedule{.peak = 2.0, .final_fraction = 0.1};
  CHECK(schedule.At(0, 0) == Approx(2.0));
  CHECK(schedule.At(5, 0.5) == Approx(1.1));
  CHECK(schedule.At(9, 1.7) == Approx(0.2));
}

}  // namespace warpsmith
