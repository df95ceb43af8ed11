#include "trainer/update/advantages.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/unit/trainer/groups.h"

namespace warpsmith {

TEST_CASE("advantages are distances to the mean in sample standard deviations") {
  // Mean 1, squares 1 + 0 + 1, sample variance 2 / 2 = 1.
  const auto advantages = ComputeAdvantages(GroupOf({0.0, 1.0, 2.0}), AdvantageKind::kGrpo);
  CHECK(*advantages[0] == Approx(-1.0 / (1 + 1e-6)).epsilon(1e-14));
  CHECK(*advantages[1] == 0.0);
  CHECK(*advantages[2] == Approx(1.0 / (1 + 1e-6)).epsilon(1e-14));
}

TEST_CASE("Dr. GRPO leaves the scale of rewards alone") {
  const auto advantages = ComputeAdvantages(GroupOf({0.5, 0.5, 2.0}), AdvantageKind::kDrGrpo);
  CHECK(*advantages[0] == Approx(-0.5));
  CHECK(*advantages[2] == Approx(1.0));
}

TEST_CASE("an unscorable answer has no advantage and does not move the others'") {
  const auto with = ComputeAdvantages(GroupOf({0.0, std::nullopt, 2.0}), AdvantageKind::kGrpo);
  const auto without = ComputeAdvantages(GroupOf({0.0, 2.0}), AdvantageKind::kGrpo);
  CHECK_FALSE(with[1].has_value());
  CHECK(with[0] == without[0]);
  CHECK(with[2] == without[1]);
  CHECK(*with[2] == Approx(1 / std::sqrt(2.0)).epsilon(1e-5));
}

TEST_CASE("equal rewards have advantage zero, not NaN") {
  for (const auto& advantage : ComputeAdvantages(GroupOf({0.7, 0.7, 0.7}), AdvantageKind::kGrpo)) {
    CHECK(std::abs(*advantage) < 1e-9);
  }
}

}  // namespace warpsmith
