#include "core/model/training/training_model.h"

#include <cmath>
#include <string>

#include "tests/support/catch.h"
#include "tests/unit/core/model/training/pass_fixture.h"

namespace warpsmith {
namespace {

TEST_CASE(
    "the kernels' losses and gradients equal autograd's in float64, for every architecture and whatever is "
    "recomputed") {
  for (const auto& [name, config] : FamilyConfigs()) {
    Parameters parameters = RandomParameters(config, at::kDouble);
    const PackedBatch batch = RandomBatch(config, {1, 7, 130, 64, 50}, 5);
    const LossAndGradients expected = Accumulated(OperatorModel(config, at::kDouble), parameters, {batch});
    for (const Recomputation recomputation : kRecomputations) {
      INFO(name << ", " << NameOf(recomputation));
      const TrainingModel kernels = KernelModel(config, at::kDouble, nullptr, recomputation);
      const LossAndGradients actual = Accumulated(kernels, parameters, {batch});
      CHECK(actual.loss == Approx(expected.loss).epsilon(1e-12));
      CHECK(LargestDifference(actual.gradients, expected.gradients) < 1e-11);
    }
  }
}

TEST_CASE(
    "each entry of a layer, biases and norms of heads among them, has the gradient of finite differences") {
  for (const auto& [name, config] : FamilyConfigs()) {
    Parameters parameters = RandomParameters(config, at::kDouble);
    const PackedBatch batch = RandomBatch(config, {70, 3}, 5);
    const TrainingModel model = KernelModel(config, at::kDouble);
    const at::Tensor gradient = Accumulated(model, parameters, {batch}).gradients[1];
    for (const ParameterEntry& entry : parameters.layout().buffers()[1].entries) {
      INFO(name << ", " << entry.name);
      at::Tensor value = parameters.buffer(1).detach()[entry.offset + entry.size() / 2];
      const double step = 1e-5, before = value.item<double>();
      const auto loss_at = [&](double x) {
        value.fill_(x);
        return Loss(model, parameters, batch);
      };
      const double slope = (loss_at(before + step) - loss_at(before - step)) / (2 * step);
      value.fill_(before);
      const double expected = gradient[entry.offset + entry.size() / 2].item<double>();
      CHECK(std::abs(expected) > 1e-7);
      CHECK(slope == Approx(expected).epsilon(1e-5).margin(1e-8));
    }
  }
}

TEST_CASE(
    "the padding of a head is in no softmax and gets no gradient, by the kernels as by autograd in float64") {
  for (const bool tied : {true, false}) {
    ModelConfig config = OddConfig();
    config.tie_word_embeddings = tied;
    const int64_t num_token_ids = 83, num_padding = config.vocab_size - num_token_ids;
    Parameters parameters = RandomParameters(config, at::kDouble);
    const int buffer = tied ? 0 : parameters.num_buffers() - 1;
    const std::string entry = tied ? "embedding" : "head";
    parameters.View(buffer, entry).detach().narrow(0, num_token_ids, num_padding).mul_(1e4);
    ModelConfig real = config;
    real.vocab_size = num_token_ids;
    const PackedBatch batch = RandomBatch(real, {1, 7, 130, 64, 50}, 5);
    const TrainingModelOptions options{.placement = {.dtype = at::kDouble}, .num_token_ids = num_token_ids};
    const TrainingModel kernels = TrainingModel::Create(config, Backend::kKernels, options).value();
    const TrainingModel operators = TrainingModel::Create(config, Backend::kOperators, options).value();

    const LossAndGradients actual = Accumulated(kernels, parameters, {batch});
    const LossAndGradients expected = Accumulated(operators, parameters, {batch});

    CHECK(std::abs(actual.loss) < 1e4);
    CHECK(actual.loss == Approx(expected.loss).epsilon(1e-12));
    CHECK(LargestDifference(actual.gradients, expected.gradients) < 1e-11);
    const ParameterEntry& head = parameters.layout().entry(buffer, entry);
    const at::Tensor head_gradient =
        actual.gradients[buffer].narrow(0, head.offset, head.size()).view(head.shape);
    CHECK(head_gradient.narrow(0, num_token_ids, num_padding).abs().max().item<double>() == 0);
    CHECK(head_gradient.narrow(0, 0, num_token_ids).abs().max().item<double>() > 0);
  }
}

TEST_CASE("the gradient of a batch does not depend on how it is split or packed, in float64") {
  const ModelConfig config = OddConfig();
  Parameters parameters = RandomParameters(config, at::kDouble);
  const TrainingModel model = KernelModel(config, at::kDouble);
  const std::vector<int64_t> lengths = {60, 3, 130, 49};
  std::vector<PackedBatch> parts;
  for (size_t i = lengths.size(); i-- > 0;) parts.push_back(RandomBatch(config, {lengths[i]}, 9 + i));
  const LossAndGradients whole = Accumulated(model, parameters, {RandomBatch(config, lengths, 9)});
  CHECK(LargestDifference(Accumulated(model, parameters, parts).gradients, whole.gradients) < 1e-12);
}

TEST_CASE("float32 kernels stay within rounding of the operators") {
  const ModelConfig config = DemoConfig();
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(1);
  const ScoredBatch batch = NextTokens(RandomBatch(config, {200, 77}, 2));
  const RowScores kernels = KernelModel(config, at::kFloat).Score(parameters, batch).value();
  const RowScores operators = OperatorModel(config, at::kFloat).Score(parameters, batch).value();
  for (size_t i = 0; i < batch.targets.size(); ++i) {
    CHECK(std::abs(kernels.log_probs[i] - operators.log_probs[i]) < 2e-5);
  }
}

TEST_CASE("entropy is that of the softmax, and rows without a target cost nothing") {
  const ModelConfig config = OddConfig();
  const Parameters parameters = RandomParameters(config, at::kDouble);
  ScoredBatch batch = NextTokens(RandomBatch(config, {70}, 4));
  batch.targets[5] = -1;
  batch.temperature = 1.3;
  const RowScores scores = KernelModel(config, at::kDouble).Score(parameters, batch).value();
  const RowScores expected = OperatorModel(config, at::kDouble).Score(parameters, batch).value();
  for (size_t i = 0; i < batch.targets.size(); ++i) {
    CHECK(scores.entropies[i] == Approx(expected.entropies[i]).epsilon(1e-12).margin(1e-15));
    CHECK(scores.log_probs[i] == Approx(expected.log_probs[i]).epsilon(1e-12).margin(1e-15));
  }
  CHECK(scores.log_probs[5] == 0.0);
  CHECK(scores.entropies[5] == 0.0);
}

TEST_CASE("a batch whose lengths do not fit together is refused, with them") {
  const ModelConfig config = OddConfig();
  const Parameters parameters = RandomParameters(config, at::kFloat);
  ScoredBatch batch = NextTokens(RandomBatch(config, {70}, 4));
  batch.targets.pop_back();
  const absl::Status status = KernelModel(config, at::kFloat).Score(parameters, batch).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("70 tokens has 70 positions, 69 targets"));
}

TEST_CASE("the kernels' logits equal the operators' in float64") {
  for (const bool tied : {true, false}) {
    ModelConfig config = OddConfig();
    config.tie_word_embeddings = tied;
    const Parameters parameters = RandomParameters(config, at::kDouble);
    const PackedBatch batch = RandomBatch(config, {70}, 4);
    CHECK(RelativeDifference(KernelModel(config, at::kDouble).Logits(parameters, batch),
                             OperatorModel(config, at::kDouble).Logits(parameters, batch)) < 1e-13);
  }
}

}  // namespace
}  // namespace warpsmith
