// Tests what programs earn, from timing to reward: credit, tables and formula together. Mirrors no source of its own.
#include "reward_service/scoring/credit.h"
#include "reward_service/scoring/formulas.h"
#include "reward_service/scoring/tables.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// The reward of a right answer to "generate": on a GPU, far from the memory ceiling. `library_share`
// of the reference's time was libraries' work; the interval of the speed-up is 2 % wide on either side.
double Earned(double speedup, double library_share) {
  RubricInputs measured;
  measured.kernels = KernelFacts{.num_kernels = 1, .load_bits_max = 32, .num_narrow_kernels = 1};
  v1::Timing& timing = measured.timing;
  timing.set_speedup(speedup);
  timing.set_speedup_low(0.98 * speedup);
  timing.set_speedup_high(1.05 * speedup);
  timing.set_distinguishable(timing.speedup_low() > 1.03 || timing.speedup_high() < 0.97);
  timing.set_libraries_withheld(library_share == 0);
  timing.set_products_alone(library_share > 0 && library_share < 1);
  timing.set_library_share(library_share);
  measured.credit = ComputeCredit(timing, {});
  RewardInputs inputs;
  inputs.verdict = v1::VERDICT_CORRECT;
  inputs.compiled = true;
  inputs.speedup = speedup;
  inputs.credited_speedup = measured.credit.speedup();
  inputs.library_share = measured.credit.library_share();
  inputs.rubric_total = ComputeRubric(measured).total();
  return ComputeReward("", inputs)->value();
}

Approx About(double reward) { return Approx(reward).epsilon(0).margin(0.01); }

TEST_CASE("own kernels earn by their speed, and a slow one more than any call of libraries") {
  CHECK(Earned(1.22, 0) == About(2.19));
  CHECK(Earned(0.65, 0) == About(1.31));
  CHECK(Earned(0.48, 0) == About(1.07));
  CHECK(Earned(0.10, 0) == About(0.53));
  CHECK(Earned(0.10, 0) > Earned(2.7, 1));
}

TEST_CASE(
    "where libraries could do all, the reference's time that is saved earns a little, and a copy nothing") {
  CHECK(Earned(2.7, 1) == About(0.42));
  CHECK(Earned(2.0, 1) == About(0.33));
  CHECK(Earned(1.6, 1) == About(0.25));
  CHECK(Earned(1.14, 1) == About(0.07));
  CHECK(Earned(1.0, 1) == 0);
  CHECK(Earned(0.87, 1) == 0);
}

TEST_CASE("where libraries could do products, the rest is own work") {
  CHECK(Earned(1.22, 0.7) == About(0.50));
  CHECK(Earned(0.77, 0.7) == About(0.28));
  CHECK(Earned(1.00, 0.95) == About(0.05));
}

}  // namespace
}  // namespace warpsmith
