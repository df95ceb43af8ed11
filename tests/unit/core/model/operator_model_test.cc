// The operator model in bfloat16 against itself in float64, on the same weights (rounded to bfloat16 first).
//
// Tolerances count roundings. One rounding to bfloat16 changes a number by at most u = 2^-8 of it, and by
// u / sqrt(3) in the mean square at most. Matrices mix errors and numbers alike, so that an error keeps its
// share of the norm of a row.
#include "core/model/operator_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

#include "core/model/decoder.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

constexpr double kUnit = 1.0 / 256;  // u above

// Uniform in [-scale, scale], rounded to bfloat16.
at::Tensor Random(int64_t rows, int64_t columns, double scale, uint64_t seed) {
  std::vector<double> values(rows * columns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = scale * (2 * UniformDouble(seed, i) - 1);
  return at::tensor(values, at::TensorOptions(at::kDouble)).view({rows, columns}).to(at::kBFloat16);
}

// Matrices large enough that attention distinguishes positions; norm weights away from 1.
Parameters BrainFloatParameters(const ModelConfig& config) {
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(3);
  for (int i = 0; i < parameters.num_buffers(); ++i) {
    for (const ParameterEntry& entry : parameters.layout().buffers()[i].entries) {
      at::Tensor values = parameters.View(i, entry.name);
      values.mul_(entry.shape.size() > 1 ? 6.0 : 1.3);
    }
  }
  return parameters.Clone(at::kBFloat16);
}

// The largest error of a row, as a share of the row's norm.
double RowError(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor a = actual.to(at::kDouble).flatten(1), b = expected.flatten(1);
  return (at::linalg_vector_norm(a - b, 2, 1) / at::linalg_vector_norm(b, 2, 1)).max().item<double>();
}

// The error of all rows together, as a share of their norm.
double TotalError(const at::Tensor& actual, const at::Tensor& expected) {
  return ((actual.to(at::kDouble) - expected).norm() / expected.norm()).item<double>();
}

// A number of the residual stream is rounded about 18 times a layer: in the attention's norm (2), projection
// (1), heads' norm (2), rotation (3), attention (1), projection and sum (2), then in the other norm (2),
// projection (1), silu and product (2), projection and sum (2). Independent roundings add up to
// u sqrt(18 layers / 3), which is 4.9 u for 4 layers. Three times that is allowed: softmax enlarges an error
// of the scores, and what one layer gets wrong the next ones work with.
double ModelTolerance(const ModelConfig& config) {
  return 3 * kUnit * std::sqrt(6.0 * static_cast<double>(config.num_hidden_layers));
}

TEST_CASE("queries and keys in bfloat16 are rotated by the angles of their own positions") {
  // Roundings on the way to a query: 2 in the norm of the input, 1 in the projection, 2 in the norm of the
  // head, and cosine, product and sum of the rotation.
  constexpr double kTolerance = 8 * kUnit;
  const at::NoGradGuard no_grad;
  const ModelConfig config = DemoConfig();
  const Parameters rounded = BrainFloatParameters(config), exact = rounded.Clone(at::kDouble);
  const std::vector<int64_t> numbers = {0, 1, 255, 256, 257, 300, 511, 513, 700, 1023, 1999, 32767};
  const at::Tensor positions = at::tensor(numbers, at::TensorOptions(at::kLong));
  const at::Tensor x = Random(positions.size(0), config.hidden_size, 1.0, 11);
  const QueryKeyValue actual = OperatorQueryKeyValue(rounded, 1, x, positions);
  const QueryKeyValue expected = OperatorQueryKeyValue(exact, 1, x.to(at::kDouble), positions);
  CHECK(actual.query.scalar_type() == at::kBFloat16);
  CHECK(RowError(actual.query, expected.query) < kTolerance);
  CHECK(RowError(actual.key, expected.key) < kTolerance);
  CHECK(RowError(actual.value, expected.value) < kTolerance);
}

TEST_CASE("RMSNorm in bfloat16 squares and averages without rounding to bfloat16") {
  // Two roundings an element: the quotient and the product with the weight. They change the length of a row
  // little. The quotient multiplies a row by one number, so its rounding depends on the mantissa alone: 128
  // draws in the octave that holds 7/8 of the squares, u / sqrt(3 * 128) = 0.05 u. Five times that is
  // allowed. A mean square or its root rounded to bfloat16 changes the whole row, by up to u each.
  constexpr double kLengthTolerance = kUnit / 4, kElementTolerance = 2 * kUnit * (1 + kUnit);
  constexpr int64_t kSize = 4096;
  const at::Tensor weight = (Random(1, kSize, 1.0, 5) + 2.0).squeeze(0);
  for (const double scale : {1e-3, 0.37, 3.0, 300.0, 4e4}) {
    double length_error = 0, element_error = 0;
    for (int64_t row = 0; row < 8; ++row) {
      const at::Tensor x = Random(1, kSize, scale * (1 + 0.1 * static_cast<double>(row)), 100 + row);
      const at::Tensor rounded = OperatorRmsNorm(x, weight, 1e-6);
      CHECK(rounded.scalar_type() == at::kBFloat16);
      const at::Tensor expected = OperatorRmsNorm(x.to(at::kDouble), weight.to(at::kDouble), 1e-6);
      const at::Tensor actual = rounded.to(at::kDouble);
      const double along = ((actual * expected).sum() / (expected * expected).sum()).item<double>();
      length_error = std::max(length_error, std::abs(along - 1));
      element_error =
          std::max(element_error, ((actual - expected) / expected).abs().nan_to_num().max().item<double>());
    }
    INFO("scale " << scale << ": length " << length_error / kUnit << " u, elements " << element_error / kUnit
                  << " u");
    CHECK(length_error < kLengthTolerance);
    CHECK(element_error < kElementTolerance);
  }
}

TEST_CASE("scores of bfloat16 logits are float32, to float32's rounding") {
  // Each of the exponentials, their sum and its logarithm are rounded to float32: 1e-5 is 84 of its units at
  // 1, and log-probabilities lie near 7. Rounded to bfloat16 they would be off by up to 2^-6.
  const at::Tensor logits = Random(40, 1536, 5.0, 21);
  const std::vector<int64_t> targets(40, 700);
  const TokenScores actual = OperatorScores(logits, targets, 0.9);
  const TokenScores expected = OperatorScores(logits.to(at::kDouble), targets, 0.9);
  CHECK(actual.log_probs.scalar_type() == at::kFloat);
  CHECK((actual.log_probs - expected.log_probs).abs().max().item<double>() < 1e-5);
  CHECK((actual.entropy - expected.entropy).abs().max().item<double>() < 1e-5);
}

TEST_CASE("hidden states in bfloat16 stay within rounding of float64 beyond position 256") {
  const at::NoGradGuard no_grad;
  const ModelConfig config = DemoConfig();
  const Parameters rounded = BrainFloatParameters(config), exact = rounded.Clone(at::kDouble);
  const PackedBatch batch = RandomBatch(config, {1000, 3}, 7);
  const double error = TotalError(OperatorForward(rounded, batch), OperatorForward(exact, batch));
  INFO(error / kUnit << " u");
  CHECK(error < ModelTolerance(config));
}

TEST_CASE("the decoder in bfloat16 stays within rounding of float64 beyond position 256") {
  const ModelConfig config = DemoConfig();
  const Parameters rounded = BrainFloatParameters(config), exact = rounded.Clone(at::kDouble);
  const std::vector<int64_t> tokens = RandomTokens(config, 720, 7);
  const auto decode = [&](const Parameters& parameters) {
    Decoder decoder =
        Decoder::Create(config, Backend::kOperators, {.placement = {.dtype = parameters.dtype()}}).value();
    REQUIRE(decoder.SetParameters(parameters).ok());
    KvCache cache = decoder.MakeCache(1, 720);
    StepSequence prompt{.token_ids = {tokens.begin(), tokens.begin() + 700}};
    std::vector<at::Tensor> rows = {decoder.Step({prompt}, cache).value()};
    for (int64_t i = 700; i < 720; ++i) {
      rows.push_back(decoder.Step({{0, i, {static_cast<int32_t>(tokens[i])}}}, cache).value());
    }
    return at::cat(rows, 0).to(at::kDouble);
  };
  const double error = TotalError(decode(rounded), decode(exact));
  INFO(error / kUnit << " u");
  CHECK(error < ModelTolerance(config));
}

}  // namespace
}  // namespace warpsmith
