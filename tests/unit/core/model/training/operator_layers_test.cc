#include "core/model/training/operator_layers.h"

#include <string>

#include "core/model/training/training_pass.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

// cpu_layers_test.cc and the library transformers show that it is right.
TEST_CASE("what LibTorch throws is an error with its message, and the next pass goes on") {
  const ModelConfig config = OddConfig();
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(1);
  OperatorLayers layers(config, config.vocab_size);
  layers.Bind(&parameters);
  ScoredBatch batch{.targets = {3, -1}};
  batch.packed.Append({1, config.vocab_size});
  const absl::Status status = ScoreBatch(layers, batch).status();
  INFO(status);
  CHECK(absl::IsInternal(status));
  CHECK_THAT(std::string(status.message()), Catch::StartsWith("the embedding failed in LibTorch: "));
  batch.packed.tokens[1] = 2;
  CHECK(ScoreBatch(layers, batch).ok());
}

TEST_CASE("a pass that only scores leaves no gradient, one with a loss adds to it") {
  const ModelConfig config = OddConfig();
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(1);
  parameters.RequireGrad(true);
  OperatorLayers layers(config, config.vocab_size);
  layers.Bind(&parameters);
  ScoredBatch batch{.targets = {3, -1}};
  batch.packed.Append({1, 2});
  REQUIRE(ScoreBatch(layers, batch).ok());
  CHECK_FALSE(parameters.buffer(1).grad().defined());
  const auto one = [](const RowScores&) { return std::vector<double>{1, 0}; };
  REQUIRE(AccumulateGradient(layers, batch, one).ok());
  const double once = parameters.buffer(1).grad().norm().item<double>();
  REQUIRE(AccumulateGradient(layers, batch, one).ok());
  CHECK(once > 0);
  CHECK(parameters.buffer(1).grad().norm().item<double>() == Approx(2 * once));
}

}  // namespace
}  // namespace warpsmith
