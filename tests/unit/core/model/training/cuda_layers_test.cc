// On a GPU made of the host.
#include "core/model/training/cuda_layers.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>

#include <string>
#include <vector>

#include "core/model/stored_type_cuda.h"
#include "core/model/training/training_pass.h"
#include "tests/support/host_attention.h"
#include "tests/unit/core/model/training/pass_fixture.h"

namespace warpsmith {
namespace {

// Families whose sizes the kernels take, with a head that is padded.
std::vector<NamedConfig> PaddedFamilies() {
  std::vector<NamedConfig> families = FamilyConfigs();
  for (NamedConfig& family : families) family.config.vocab_size = 104;
  return families;
}
constexpr int64_t kTokenIds = 101;

PackedBatch BatchOf(const ModelConfig& config, const std::vector<int64_t>& lengths) {
  ModelConfig real = config;
  real.vocab_size = kTokenIds;
  return RandomBatch(real, lengths, 9);
}

// Flat buffers of T and sums of gradients, as a GPU would have them.
template <typename T>
struct Flat {
  explicit Flat(const Parameters& parameters) {
    for (int i = 0; i < parameters.num_buffers(); ++i) {
      const at::Tensor values = parameters.buffer(i).detach().to(at::kFloat).contiguous();
      weights.emplace_back(values.numel());
      for (int64_t j = 0; j < values.numel(); ++j) Store(values.const_data_ptr<float>()[j], weights[i][j]);
      gradients.emplace_back(values.numel(), 0.0f);
    }
  }

  void BindTo(CudaLayers<T>& layers) {
    std::vector<const T*> from;
    std::vector<float*> to;
    for (size_t i = 0; i < weights.size(); ++i) {
      from.push_back(weights[i].data());
      to.push_back(gradients[i].data());
    }
    layers.Bind(from, to);
  }

  std::vector<at::Tensor> Gradients() {
    std::vector<at::Tensor> found;
    for (std::vector<float>& gradient : gradients) {
      found.push_back(
          at::from_blob(gradient.data(), {static_cast<int64_t>(gradient.size())}).to(at::kDouble));
    }
    return found;
  }

  std::vector<std::vector<T>> weights;
  std::vector<std::vector<float>> gradients;
};

template <typename T>
LossAndGradients Found(const Parameters& parameters, const std::vector<PackedBatch>& parts,
                       const CudaLayersOptions& options) {
  HostAttention<T> attention;
  auto layers = CudaLayers<T>::Create(parameters.config(), options, attention, nullptr);
  INFO(layers.status());
  REQUIRE(layers.ok());
  Flat<T> flat(parameters);
  flat.BindTo(**layers);
  LossAndGradients result;
  for (const PackedBatch& packed : parts) {
    const ScoredBatch batch = NextTokens(packed);
    const absl::Status status = AccumulateGradient(**layers, batch, [&](const RowScores& scores) {
      result.loss += LossOf(scores, packed);
      return LossWeights(packed);
    });
    INFO(status);
    REQUIRE(status.ok());
  }
  result.gradients = flat.Gradients();
  return result;
}

LossAndGradients Judged(const ModelConfig& config, Parameters& parameters,
                        const std::vector<PackedBatch>& parts, at::ScalarType dtype = at::kDouble) {
  Parameters placed = parameters.Clone(dtype);
  placed.RequireGrad(true);
  const TrainingModel judge =
      TrainingModel::Create(config, Backend::kOperators,
                            {.placement = {.dtype = dtype}, .num_token_ids = kTokenIds})
          .value();
  return Accumulated(judge, placed, parts);
}

TEST_CASE("gradients of a GPU in float32 are those of the operators in float64, whatever is recomputed") {
  const NamedConfig family = GENERATE(from_range(PaddedFamilies()));
  INFO(family.name);
  Parameters parameters = RandomParameters(family.config, at::kFloat);
  const std::vector<PackedBatch> parts = {BatchOf(family.config, {60, 3, 1, 49}),
                                          BatchOf(family.config, {17})};
  const LossAndGradients expected = Judged(family.config, parameters, parts);
  std::vector<LossAndGradients> found;
  for (const Recomputation recomputation : kRecomputations) {
    INFO(NameOf(recomputation));
    found.push_back(
        Found<float>(parameters, parts,
                     {.num_token_ids = kTokenIds, .recomputation = recomputation, .head_rows_max = 40}));
    CHECK(found.back().loss == Approx(expected.loss).epsilon(1e-5));
    CHECK(LargestDifference(found.back().gradients, expected.gradients) < 1e-5);
    for (size_t i = 0; i < expected.gradients.size(); ++i) {
      CHECK(at::equal(found.back().gradients[i], found.front().gradients[i]));
    }
  }
}

TEST_CASE("gradients of a GPU in bfloat16 are as near as those of LibTorch's own bfloat16") {
  const NamedConfig family = GENERATE(from_range(PaddedFamilies()));
  INFO(family.name);
  Parameters parameters = RandomParameters(family.config, at::kFloat);
  Parameters rounded = parameters.Clone(at::kBFloat16).Clone(at::kFloat);
  const std::vector<PackedBatch> parts = {BatchOf(family.config, {60, 3, 1, 49})};
  const LossAndGradients expected = Judged(family.config, rounded, parts);
  const LossAndGradients peer = Judged(family.config, rounded, parts, at::kBFloat16);
  const LossAndGradients found =
      Found<__nv_bfloat16>(rounded, parts, {.num_token_ids = kTokenIds, .head_rows_max = 2048});
  std::vector<at::Tensor> peer_gradients;
  for (const at::Tensor& gradient : peer.gradients) peer_gradients.push_back(gradient.to(at::kDouble));
  CHECK(LargestDifference(found.gradients, expected.gradients) <
        1.5 * LargestDifference(peer_gradients, expected.gradients));
}

TEST_CASE("scores alone keep nothing and are those of a pass with gradients") {
  const ModelConfig config = PaddedFamilies()[0].config;
  const Parameters parameters = RandomParameters(config, at::kFloat);
  const ScoredBatch batch = NextTokens(BatchOf(config, {60, 3, 1, 49}));
  HostAttention<float> attention;
  auto layers = CudaLayers<float>::Create(config, {.num_token_ids = kTokenIds}, attention, nullptr);
  REQUIRE(layers.ok());
  Flat<float> flat(parameters);
  flat.BindTo(**layers);
  const absl::StatusOr<RowScores> alone = ScoreBatch(**layers, batch);
  REQUIRE(alone.ok());
  RowScores with_gradient;
  REQUIRE(AccumulateGradient(**layers, batch, [&](const RowScores& scores) {
            with_gradient = scores;
            return std::vector<double>(scores.log_probs.size());
          }).ok());
  CHECK(alone->log_probs == with_gradient.log_probs);
  CHECK(alone->entropies == with_gradient.entropies);
  // A batch without targets scores nothing.
  ScoredBatch silent = batch;
  silent.targets.assign(batch.targets.size(), -1);
  CHECK(ScoreBatch(**layers, silent)->log_probs == std::vector<double>(batch.targets.size()));
}

TEST_CASE("a model that the kernels do not take is refused with its sizes") {
  HostAttention<float> attention;
  const auto layers = CudaLayers<float>::Create(OddConfig(), {.num_token_ids = 101}, attention, nullptr);
  CHECK(absl::IsInvalidArgument(layers.status()));
  CHECK_THAT(std::string(layers.status().message()), Catch::Contains("vocab_size 101"));
}

}  // namespace
}  // namespace warpsmith
