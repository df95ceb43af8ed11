// What a step says of itself: in its line of metrics and to whoever watches.
#include <cmath>
#include <map>
#include <string>

#include "tests/support/catch.h"
#include "tests/unit/trainer/groups.h"
#include "trainer/phases/step_metrics.h"

namespace warpsmith {
namespace {

StepMetrics Collected(const CollectedGroups& groups) {
  return {.groups = SummariseGroups(groups), .learning_rate = 1e-3, .step_seconds = 2.5};
}

PolicyUpdateResult Updated() {
  return {.sums = {.loss = 0.25, .entropy = 8, .num_tokens = 10}, .gradient_norm = 0.5, .num_taken = 1};
}

std::map<std::string, double> Scalars(const StepMetrics& metrics) {
  std::map<std::string, double> scalars;
  for (const auto& [name, value] : ToScalars(metrics)) scalars[name] = value;
  return scalars;
}

}  // namespace

TEST_CASE("a step that made an update says nothing of why it made none") {
  StepMetrics metrics = Collected({.used = {GroupOf({0.5, 1.5})}});
  metrics.update = Updated();
  CHECK(WhyNoUpdate(metrics).empty());
  CHECK(DescribeStep(3, metrics) == "step 3, reward 1.000, correct 1.00, entropy 0.80, 2.5 s");
}

TEST_CASE("groups of equal rewards are why a step made no update") {
  const StepMetrics metrics = Collected({.equal = {GroupOf({1.0, 1.0}), GroupOf({0.0, 0.0})}});
  CHECK(WhyNoUpdate(metrics) == "all 2 groups had zero variance");
  CHECK(DescribeStep(1, metrics) ==
        "step 1, no update: all 2 groups had zero variance, reward 0.500, correct 1.00, 2.5 s");
}

TEST_CASE("a step without a scored completion says how many were not, and names no reward") {
  TransitionGroup faulty = GroupOf({std::nullopt, std::nullopt});
  for (Transition& transition : faulty.transitions) transition.grade.verdict = Verdict::kInvalidTask;
  const StepMetrics metrics = Collected({.equal = {GroupOf({std::nullopt}), faulty}});
  CHECK(DescribeStep(2, metrics) ==
        "step 2, no update: no scored completion (1 UNSCORABLE, 2 INVALID_TASK), 2.5 s");
}

TEST_CASE("groups with too few scored completions are told from those of zero variance") {
  const StepMetrics metrics =
      Collected({.equal = {GroupOf({1.0, 1.0}), GroupOf({1.0, std::nullopt}), GroupOf({std::nullopt})}});
  CHECK(WhyNoUpdate(metrics) == "1 of 3 groups had zero variance, 2 had fewer than two scored completions");
}

TEST_CASE("nothing collected, answers without a token and a broken gradient each have their reason") {
  CHECK(WhyNoUpdate(Collected({})) == "no group was collected");
  StepMetrics metrics = Collected({.used = {GroupOf({0.5, 1.5})}});
  CHECK(WhyNoUpdate(metrics) == "no completion had a token");
  metrics.update = Updated();
  metrics.update->num_taken = 0;
  metrics.update->num_skipped = 1;
  CHECK(WhyNoUpdate(metrics) == "the gradient was not finite");
}

TEST_CASE("what a step without an update does not have is no number, what it counted is one") {
  const auto scalars = Scalars(Collected({.equal = {GroupOf({1.0, 1.0})}, .num_rounds = 1}));
  for (const char* name : {"loss", "entropy", "kl_reference", "kl_old", "clipped_rate",
                           "weight_truncated_rate", "log_prob_difference_max", "gradient_norm",
                           "learning_rate", "update_seconds", "publish_seconds", "reward_optimise"}) {
    INFO(name);
    CHECK(std::isnan(scalars.at(name)));
  }
  CHECK(scalars.at("mean_reward") == 1.0);
  CHECK(scalars.at("num_tokens") == 0);
  CHECK(scalars.at("num_used_groups") == 0);
  CHECK(scalars.at("num_equal_groups") == 1);
}

TEST_CASE("rates of nothing are no numbers") {
  const auto scalars = Scalars(Collected({.equal = {GroupOf({std::nullopt})}}));
  for (const char* name : {"mean_reward", "compile_rate", "correct_rate", "fast_1", "geomean_speedup"}) {
    INFO(name);
    CHECK(std::isnan(scalars.at(name)));
  }
  CHECK(scalars.at("num_unscored") == 1);
  CHECK(std::isnan(Scalars(Collected({})).at("answer_tokens_mean")));
}

TEST_CASE("a step with an update has its figures, and a distance to a reference where there is one") {
  StepMetrics metrics = Collected({.used = {GroupOf({0.5, 1.5})}});
  metrics.update = Updated();
  metrics.publish_seconds = 0.25;
  auto scalars = Scalars(metrics);
  CHECK(scalars.at("loss") == 0.25);
  CHECK(scalars.at("entropy") == 0.8);
  CHECK(scalars.at("gradient_norm") == 0.5);
  CHECK(scalars.at("learning_rate") == 1e-3);
  CHECK(scalars.at("publish_seconds") == 0.25);
  CHECK(std::isnan(scalars.at("kl_reference")));
  metrics.has_reference = true;
  CHECK(Scalars(metrics).at("kl_reference") == 0);
}

}  // namespace warpsmith
