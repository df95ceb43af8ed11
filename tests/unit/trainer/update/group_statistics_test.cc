#include "trainer/update/group_statistics.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/unit/trainer/groups.h"

namespace warpsmith {

TEST_CASE("statistics leave out what was not scored") {
  const GroupStatistics statistics = ComputeGroupStatistics(GroupOf({1.0, std::nullopt, 2.0, 6.0}));
  CHECK(statistics.num_scored == 3);
  CHECK(statistics.mean == Approx(3.0));
  CHECK(statistics.standard_deviation == Approx(std::sqrt(7.0)));  // (4 + 1 + 9) / 2
  CHECK(statistics.spread == Approx(5.0));
}

TEST_CASE("a group without any grade has no statistics and counts as equal") {
  const GroupStatistics statistics = ComputeGroupStatistics(GroupOf({std::nullopt, std::nullopt}));
  CHECK(statistics.num_scored == 0);
  CHECK(CountsAsEqual(statistics, 0.05));
}

TEST_CASE("rewards within the noise of timing count as equal, beyond it they do not") {
  CHECK(CountsAsEqual(ComputeGroupStatistics(GroupOf({1.0, 1.049})), 0.05));
  CHECK_FALSE(CountsAsEqual(ComputeGroupStatistics(GroupOf({1.0, 1.051})), 0.05));
  CHECK(CountsAsEqual(ComputeGroupStatistics(GroupOf({1.0})), 0.05));
}

TEST_CASE("identical rewards count as equal also where no spread is too small") {
  CHECK(CountsAsEqual(ComputeGroupStatistics(GroupOf({1.0, 1.0})), 0));
  CHECK_FALSE(CountsAsEqual(ComputeGroupStatistics(GroupOf({1.0, 1.0 + 1e-9})), 0));
}

TEST_CASE("equal programs share the first grade, also where a second grading failed") {
  TransitionGroup group = GroupOf({1.0, 1.2, 0.3, std::nullopt});
  for (const int index : {0, 1, 3}) group.transitions[index].grade.source_sha256 = "aa";
  group.transitions[2].grade.source_sha256 = "bb";
  ShareGrades(group);
  CHECK(group.transitions[1].grade.reward == 1.0);
  CHECK(group.transitions[3].grade.reward == 1.0);
  CHECK(group.transitions[2].grade.reward == 0.3);
}

TEST_CASE("answers without code share nothing") {
  TransitionGroup group = GroupOf({0.0, 1.0});
  ShareGrades(group);
  CHECK(group.transitions[1].grade.reward == 1.0);
}

}  // namespace warpsmith
