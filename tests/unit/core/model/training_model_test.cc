#include "core/model/training_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>

#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

// Weights with every entry away from its default, so that a missing factor shows.
Parameters RandomParameters(const ModelConfig& config, at::ScalarType dtype) {
  Parameters floats{ParameterLayout(config)};
  floats.InitRandom(3);
  Parameters parameters = floats.Clone(dtype);
  for (int i = 0; i < parameters.num_buffers(); ++i) {
    for (const ParameterEntry& entry : parameters.layout().buffers()[i].entries) {
      at::Tensor values = parameters.View(i, entry.name).view({-1});
      for (int64_t j = 0; j < values.size(0); j += entry.shape.size() == 1 ? 1 : values.size(0)) {
        if (entry.shape.size() == 1) values[j].add_(0.3 * UniformDouble(i + 17, j) - 0.1);
      }
      if (entry.shape.size() > 1) values.mul_(8.0);
    }
  }
  parameters.RequireGrad(true);
  return parameters;
}

TrainingModel KernelModel(const ModelConfig& config, at::ScalarType dtype, ThreadPool* pool = nullptr) {
  return TrainingModel::Create(config, Backend::kKernels, {.placement = {.dtype = dtype}, .pool = pool})
      .value();
}

TrainingModel OperatorModel(const ModelConfig& config, at::ScalarType dtype) {
  return TrainingModel::Create(config, Backend::kOperators, {.placement = {.dtype = dtype}}).value();
}

std::vector<int64_t> NextTokens(const PackedBatch& batch) {
  std::vector<int64_t> targets(batch.tokens.begin() + 1, batch.tokens.end());
  targets.push_back(-1);
  for (size_t b = 1; b < batch.cu_seqlens.size(); ++b) targets[batch.cu_seqlens[b] - 1] = -1;
  return targets;
}

// A weighted sum of log-probabilities; `weight` of a token depends on it and its position alone.
at::Tensor Loss(const TrainingModel& model, const Parameters& parameters, const PackedBatch& batch) {
  const TokenScores scores =
      model.TokenLogProbs(parameters, model.Forward(parameters, batch), NextTokens(batch), 0.8);
  at::Tensor weights = at::zeros_like(scores.log_probs.detach());
  for (int64_t t = 0; t < batch.num_tokens(); ++t) {
    weights[t].fill_(UniformDouble(batch.tokens[t], batch.positions[t]) - 0.3);
  }
  return (scores.log_probs * weights).sum();
}

std::vector<at::Tensor> Gradients(const Parameters& parameters) {
  std::vector<at::Tensor> gradients;
  for (int i = 0; i < parameters.num_buffers(); ++i) gradients.push_back(parameters.buffer(i).grad().clone());
  return gradients;
}

double RelativeDifference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

double LargestDifference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, RelativeDifference(a[i], b[i]));
  return largest;
}

TEST_CASE(
    "the kernels' hidden states, scores and gradients equal autograd's in float64, for every architecture") {
  for (const auto& [name, config] : FamilyConfigs()) {
    INFO(name);
    Parameters parameters = RandomParameters(config, at::kDouble);
    const PackedBatch batch = RandomBatch(config, {1, 7, 130, 64, 50}, 5);
    const TrainingModel kernels = KernelModel(config, at::kDouble),
                        operators = OperatorModel(config, at::kDouble);

    const at::Tensor loss = Loss(kernels, parameters, batch);
    loss.backward();
    const std::vector<at::Tensor> gradients = Gradients(parameters);
    parameters.ZeroGrad();
    const at::Tensor expected_loss = Loss(operators, parameters, batch);
    expected_loss.backward();

    CHECK(loss.item<double>() == Approx(expected_loss.item<double>()).epsilon(1e-12));
    CHECK(LargestDifference(gradients, Gradients(parameters)) < 1e-11);
  }
}

TEST_CASE(
    "each entry of a layer, biases and norms of heads among them, has the gradient of finite differences") {
  for (const auto& [name, config] : FamilyConfigs()) {
    Parameters parameters = RandomParameters(config, at::kDouble);
    const PackedBatch batch = RandomBatch(config, {70, 3}, 5);
    const TrainingModel model = KernelModel(config, at::kDouble);
    Loss(model, parameters, batch).backward();
    const at::Tensor gradient = parameters.buffer(1).grad().clone();
    for (const ParameterEntry& entry : parameters.layout().buffers()[1].entries) {
      INFO(name << ", " << entry.name);
      at::Tensor value = parameters.buffer(1).detach()[entry.offset + entry.size() / 2];
      const double step = 1e-5, before = value.item<double>();
      const auto loss_at = [&](double x) {
        const at::NoGradGuard no_grad;
        value.fill_(x);
        return Loss(model, parameters, batch).item<double>();
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

    const at::Tensor loss = Loss(kernels, parameters, batch);
    loss.backward();
    const std::vector<at::Tensor> gradients = Gradients(parameters);
    parameters.ZeroGrad();
    const at::Tensor expected_loss = Loss(operators, parameters, batch);
    expected_loss.backward();

    CHECK(std::abs(loss.item<double>()) < 1e4);
    CHECK(loss.item<double>() == Approx(expected_loss.item<double>()).epsilon(1e-12));
    CHECK(LargestDifference(gradients, Gradients(parameters)) < 1e-11);
    const ParameterEntry& head = parameters.layout().entry(buffer, entry);
    const at::Tensor head_gradient = gradients[buffer].narrow(0, head.offset, head.size()).view(head.shape);
    CHECK(head_gradient.narrow(0, num_token_ids, num_padding).abs().max().item<double>() == 0);
    CHECK(head_gradient.narrow(0, 0, num_token_ids).abs().max().item<double>() > 0);
  }
}

TEST_CASE("the gradient of a batch does not depend on how it is split or packed, in float64") {
  const ModelConfig config = OddConfig();
  Parameters parameters = RandomParameters(config, at::kDouble);
  const TrainingModel model = KernelModel(config, at::kDouble);
  const std::vector<int64_t> lengths = {60, 3, 130, 49};
  const PackedBatch whole = RandomBatch(config, lengths, 9);
  Loss(model, parameters, whole).backward();
  const std::vector<at::Tensor> expected = Gradients(parameters);

  parameters.ZeroGrad();
  for (size_t i = lengths.size(); i-- > 0;) {
    PackedBatch part;
    part.Append(RandomTokens(config, lengths[i], 9 + i));
    Loss(model, parameters, part).backward();
  }
  CHECK(LargestDifference(Gradients(parameters), expected) < 1e-12);
}

TEST_CASE("float32 results have the same bits with one thread, with two, and in another packing") {
  const NamedConfig family = GENERATE(from_range(FamilyConfigs()));
  INFO(family.name);
  const ModelConfig& config = family.config;
  Parameters parameters = RandomParameters(config, at::kFloat);
  ThreadPool pool(2);
  const TrainingModel alone = KernelModel(config, at::kFloat), pair = KernelModel(config, at::kFloat, &pool);
  const PackedBatch batch = RandomBatch(config, {60, 3, 130, 49}, 9);
  const PackedBatch last = RandomBatch(config, {49}, 12);

  const at::Tensor hidden = alone.Forward(parameters, batch);
  CHECK(at::equal(hidden, pair.Forward(parameters, batch)));
  CHECK(at::equal(hidden.narrow(0, 193, 49), alone.Forward(parameters, last)));

  Loss(alone, parameters, batch).backward();
  const std::vector<at::Tensor> gradients = Gradients(parameters);
  parameters.ZeroGrad();
  Loss(pair, parameters, batch).backward();
  for (size_t i = 0; i < gradients.size(); ++i) CHECK(at::equal(gradients[i], parameters.buffer(i).grad()));
}

TEST_CASE("float32 kernels stay within rounding of the operators") {
  const ModelConfig config = DemoConfig();
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(1);
  const at::NoGradGuard no_grad;
  const PackedBatch batch = RandomBatch(config, {200, 77}, 2);
  const TrainingModel kernels = KernelModel(config, at::kFloat),
                      operators = OperatorModel(config, at::kFloat);
  const at::Tensor difference = kernels.Forward(parameters, batch) - operators.Forward(parameters, batch);
  CHECK(difference.abs().max().item<float>() < 2e-5f);
}

TEST_CASE("entropy is that of the softmax, and rows without a target cost nothing") {
  const ModelConfig config = OddConfig();
  const Parameters parameters = RandomParameters(config, at::kDouble);
  const PackedBatch batch = RandomBatch(config, {70}, 4);
  const TrainingModel kernels = KernelModel(config, at::kDouble),
                      operators = OperatorModel(config, at::kDouble);
  const at::Tensor hidden = kernels.Forward(parameters, batch);
  std::vector<int64_t> targets = NextTokens(batch);
  targets[5] = -1;
  const TokenScores scores = kernels.TokenLogProbs(parameters, hidden, targets, 1.3);
  const TokenScores expected = operators.TokenLogProbs(parameters, hidden, targets, 1.3);
  CHECK(RelativeDifference(scores.entropy, expected.entropy) < 1e-13);
  CHECK(RelativeDifference(scores.log_probs, expected.log_probs) < 1e-13);
  CHECK(scores.log_probs[5].item<double>() == 0.0);
  CHECK_FALSE(scores.entropy.requires_grad());
}

TEST_CASE("the kernels' logits equal the operators' in float64") {
  for (const bool tied : {true, false}) {
    ModelConfig config = OddConfig();
    config.tie_word_embeddings = tied;
    const Parameters parameters = RandomParameters(config, at::kDouble);
    const at::NoGradGuard no_grad;
    const TrainingModel kernels = KernelModel(config, at::kDouble),
                        operators = OperatorModel(config, at::kDouble);
    const at::Tensor hidden = kernels.Forward(parameters, RandomBatch(config, {70}, 4));
    CHECK(RelativeDifference(kernels.Logits(parameters, hidden), operators.Logits(parameters, hidden)) <
          1e-13);
  }
}

}  // namespace
}  // namespace warpsmith
