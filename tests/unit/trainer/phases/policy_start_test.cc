#include "trainer/phases/policy_start.h"

#include "core/model/training/cpu_trainer.h"
#include "tests/support/catch.h"
#include "tests/unit/trainer/policy_batch.h"

namespace warpsmith {

TEST_CASE(
    "a policy without a checkpoint has random weights, the same each time, and the settings of the run") {
  Configuration configuration;
  configuration.model.config = TinyModel();
  configuration.trainer.gradient_norm_max = 1e-3;
  std::vector<std::string> weights;
  for (int i = 0; i < 2; ++i) {
    auto policy = MakePolicy(configuration, /*num_token_ids=*/48, /*gpu=*/nullptr, /*pool=*/nullptr);
    REQUIRE(policy.ok());
    REQUIRE(InitialiseWeights(configuration.model, **policy).ok());
    weights.push_back(BytesOf((*policy)->HostWeights().value()));
  }
  CHECK(weights[0] == weights[1]);
  CHECK(weights[0] != std::string(weights[0].size(), '\0'));
}

TEST_CASE("the plan of memory has the reference of a KL term, and is told in GB") {
  Configuration configuration;
  configuration.model.config = TinyModel();
  const TrainingMemory plan = PlanMemory(configuration);
  configuration.grpo.loss.kl_weight = 0.1;
  CHECK(PlanMemory(configuration).state * 18 == plan.state * 20);
  CHECK(DescribeMemory({.state = 1'000'000'000, .activations = 10'500'000'000, .libraries = 800'000'000}) ==
        "12.3 GB: 1.0 of weights and optimiser, 10.5 of activations, 0.8 of libraries");
}

TEST_CASE("a folder that holds no weights is an error") {
  const auto policy = MakePolicy();
  CHECK_FALSE(InitialiseWeights({.path = "datasets", .config = TinyModel()}, *policy).ok());
}

}  // namespace warpsmith
