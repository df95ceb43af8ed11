#include "core/model/training/cpu_layers.h"

#include <ATen/ops/equal.h>

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/unit/core/model/training/pass_fixture.h"

namespace warpsmith {
namespace {

TEST_CASE(
    "float32 results have the same bits with one thread, with two, in another packing, and whatever is "
    "recomputed") {
  const NamedConfig family = GENERATE(from_range(FamilyConfigs()));
  INFO(family.name);
  const ModelConfig& config = family.config;
  Parameters parameters = RandomParameters(config, at::kFloat);
  ThreadPool pool(2);
  const TrainingModel alone = KernelModel(config, at::kFloat);
  const PackedBatch batch = RandomBatch(config, {60, 3, 130, 49}, 9);

  const std::vector<double> together = alone.Score(parameters, NextTokens(batch))->log_probs;
  CHECK(alone.Score(parameters, NextTokens(RandomBatch(config, {49}, 12)))->log_probs ==
        std::vector<double>(together.begin() + 193, together.end()));

  const LossAndGradients expected = Accumulated(alone, parameters, {batch});
  for (const Recomputation recomputation : kRecomputations) {
    INFO(NameOf(recomputation));
    const TrainingModel pair = KernelModel(config, at::kFloat, &pool, recomputation);
    const LossAndGradients actual = Accumulated(pair, parameters, {batch});
    CHECK(actual.loss == expected.loss);
    for (size_t i = 0; i < expected.gradients.size(); ++i) {
      CHECK(at::equal(actual.gradients[i], expected.gradients[i]));
    }
  }
}

TEST_CASE("a pass after another, and after one that only scored, is as the first") {
  const ModelConfig config = OddConfig();
  Parameters parameters = RandomParameters(config, at::kFloat);
  const TrainingModel model = KernelModel(config, at::kFloat, nullptr, Recomputation::kAllButAttention);
  const PackedBatch batch = RandomBatch(config, {60, 3}, 9), longer = RandomBatch(config, {130, 49}, 4);
  const LossAndGradients first = Accumulated(model, parameters, {batch});
  CHECK(model.Score(parameters, NextTokens(longer)).ok());
  const LossAndGradients again = Accumulated(model, parameters, {batch});
  for (size_t i = 0; i < first.gradients.size(); ++i) {
    CHECK(at::equal(first.gradients[i], again.gradients[i]));
  }
}

}  // namespace
}  // namespace warpsmith
