#include "trainer/phases/step_metrics.h"

#include <map>
#include <string>

#include "tests/support/catch.h"
#include "tests/unit/trainer/groups.h"

namespace warpsmith {

TEST_CASE("malformed answers are counted, in used and in equal groups, and leave every rate") {
  CollectedGroups collected;
  collected.used.push_back(GroupOf({1.0, 2.0, std::nullopt}));
  collected.used[0].transitions[2].malformed = "sample 2 has no prompt";
  collected.equal.push_back(GroupOf({std::nullopt, std::nullopt}));
  collected.equal[0].transitions[1].malformed = "sample 1 has no prompt";
  StepMetrics metrics;
  metrics.groups = SummariseGroups(collected);
  CHECK(metrics.groups.num_malformed == 2);
  CHECK(metrics.groups.num_unscored == 3);
  CHECK(metrics.groups.reward_mean == 1.5);
  CHECK(metrics.groups.correct_rate == 1.0);
  std::map<std::string, double> scalars;
  for (const auto& [name, value] : ToScalars(metrics)) scalars[name] = value;
  CHECK(scalars.count("num_malformed") == 1);
  CHECK(scalars["num_malformed"] == 2);
}

}  // namespace warpsmith
