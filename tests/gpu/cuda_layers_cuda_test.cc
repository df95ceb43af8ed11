// Passes on a GPU beside LibTorch's operators there.
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>

#include <cstdio>
#include <vector>

#include "core/model/training/cuda_layers.h"
#include "core/model/training/flash_attention_cuda.h"
#include "core/model/training/training_pass.h"
#include "tests/unit/core/model/training/pass_fixture.h"

namespace warpsmith {
namespace {

using Bfloat16 = __nv_bfloat16;

// Families with heads that the attention takes: 64 and 128 elements.
std::vector<NamedConfig> Families() {
  std::vector<NamedConfig> families = FamilyConfigs();
  for (size_t i = 0; i < families.size(); ++i) {
    ModelConfig& config = families[i].config;
    config.vocab_size = 1000;
    config.hidden_size = 256;
    config.intermediate_size = 512;
    config.num_attention_heads = 8;
    config.num_key_value_heads = i % 2 == 0 ? 2 : 8;
    config.head_dim = i % 2 == 0 ? 64 : 128;
  }
  return families;
}

// Weights of a GPU's tensors, and sums of gradients beside them.
struct Flat {
  explicit Flat(const Parameters& parameters) {
    for (int i = 0; i < parameters.num_buffers(); ++i) {
      weights.push_back(parameters.buffer(i).detach().to(at::kCUDA, at::kBFloat16));
      gradients.push_back(at::zeros_like(weights.back(), at::kFloat));
    }
    cudaDeviceSynchronize();
  }

  void BindTo(CudaLayers<Bfloat16>& layers) {
    std::vector<const Bfloat16*> from;
    std::vector<float*> to;
    for (size_t i = 0; i < weights.size(); ++i) {
      from.push_back(static_cast<const Bfloat16*>(weights[i].const_data_ptr()));
      to.push_back(gradients[i].mutable_data_ptr<float>());
    }
    layers.Bind(from, to);
  }

  std::vector<at::Tensor> weights, gradients;
};

std::vector<at::Tensor> Found(const Parameters& parameters, const PackedBatch& packed,
                              const CudaLayersOptions& options) {
  const auto attention = MakeFlashAttention(0, /*deterministic=*/true);
  auto layers = CudaLayers<Bfloat16>::Create(parameters.config(), options, *attention, nullptr);
  INFO(layers.status());
  REQUIRE(layers.ok());
  Flat flat(parameters);
  flat.BindTo(**layers);
  const absl::Status status =
      AccumulateGradient(**layers, NextTokens(packed), [&](const RowScores&) { return LossWeights(packed); });
  INFO(status);
  REQUIRE(status.ok());
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  std::vector<at::Tensor> found;
  for (const at::Tensor& gradient : flat.gradients) found.push_back(gradient.to(at::kCPU, at::kDouble));
  return found;
}

std::vector<at::Tensor> Judged(const Parameters& parameters, const PackedBatch& packed, at::ScalarType dtype,
                               at::Device device) {
  Parameters placed(parameters.layout(), dtype, device);
  placed.CopyFrom(parameters);
  placed.RequireGrad(true);
  const TrainingModel judge = TrainingModel::Create(parameters.config(), Backend::kOperators,
                                                    {.placement = {.dtype = dtype, .device = device}})
                                  .value();
  std::vector<at::Tensor> found;
  for (const at::Tensor& gradient : Accumulated(judge, placed, {packed}).gradients) {
    found.push_back(gradient.to(at::kCPU, at::kDouble));
  }
  return found;
}

TEST_CASE("gradients in bfloat16 are as near to float64 as those of LibTorch, and repeat to the bit") {
  const NamedConfig family = GENERATE(from_range(Families()));
  INFO(family.name);
  const Parameters parameters =
      RandomParameters(family.config, at::kFloat).Clone(at::kBFloat16).Clone(at::kFloat);
  const PackedBatch packed = RandomBatch(family.config, {60, 3, 1, 333, 128}, 9);
  const std::vector<at::Tensor> expected = Judged(parameters, packed, at::kDouble, at::kCPU);
  const std::vector<at::Tensor> peer = Judged(parameters, packed, at::kBFloat16, at::Device(at::kCUDA, 0));
  std::vector<std::vector<at::Tensor>> found;
  for (const Recomputation recomputation : kRecomputations) {
    for (int run = 0; run < 2; ++run) {
      found.push_back(Found(parameters, packed,
                            {.num_token_ids = 1000, .recomputation = recomputation, .head_rows_max = 200}));
      for (size_t i = 0; i < expected.size(); ++i) CHECK(at::equal(found.back()[i], found.front()[i]));
    }
  }
  const double ours = LargestDifference(found.front(), expected), theirs = LargestDifference(peer, expected);
  std::printf("%s: error %.3e, LibTorch's %.3e, ratio %.2f\n", family.name.c_str(), ours, theirs,
              ours / theirs);
  CHECK(ours < 1.5 * theirs);
}

}  // namespace
}  // namespace warpsmith
