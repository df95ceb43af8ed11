// Passes on a GPU beside LibTorch's operators there, and the rate of a training step.
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "core/kernels/random_normals_cuda.h"
#include "core/kernels/training/adamw_cuda.h"
#include "core/model/training/cuda_layers.h"
#include "core/model/training/flash_attention_cuda.h"
#include "core/model/training/training_pass.h"
#include "tests/gpu/device_array.h"
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

// Qwen3-1.7B.
ModelConfig Qwen17B() {
  ModelConfig config;
  config.vocab_size = 151936;
  config.hidden_size = 2048;
  config.intermediate_size = 6144;
  config.num_hidden_layers = 28;
  config.num_attention_heads = 16;
  config.num_key_value_heads = 8;
  config.head_dim = 128;
  config.max_position_embeddings = 40960;
  config.rope_theta = 1e6;
  config.tie_word_embeddings = true;
  return config;
}

// Weights, masters, moments and gradients of a whole model.
struct TrainingState {
  explicit TrainingState(const ParameterLayout& layout) : layout(layout) {
    for (const ParameterBuffer& buffer : layout.buffers()) {
      const auto zeros = [&](at::ScalarType type) {
        return at::zeros({buffer.size}, at::TensorOptions(type).device(at::kCUDA, 0));
      };
      at::Tensor master = zeros(at::kFloat);
      for (const ParameterEntry& entry : buffer.entries) {
        if (entry.decays) {
          WS_CHECK(LaunchRandomNormals<float>(master.mutable_data_ptr<float>() + entry.offset, entry.size(),
                                              entry.offset + 7, 0.02f, nullptr) == cudaSuccess);
        } else {
          master.narrow(0, entry.offset, entry.size()).fill_(1.0);
        }
      }
      weights.push_back(master.to(at::kBFloat16));
      masters.push_back(master);
      gradients.push_back(zeros(at::kFloat));
      first.push_back(zeros(at::kFloat));
      second.push_back(zeros(at::kFloat));
    }
    parts = at::zeros({kSquareParts}, at::TensorOptions(at::kDouble).device(at::kCUDA, 0));
    sum = at::zeros({1}, at::TensorOptions(at::kDouble).device(at::kCUDA, 0));
    cudaDeviceSynchronize();
  }

  // Returns the gradient's norm.
  double Update(int64_t step) {
    sum.zero_();
    for (const at::Tensor& gradient : gradients) {
      WS_CHECK(LaunchSumOfSquares(gradient.const_data_ptr<float>(), gradient.numel(),
                                  parts.mutable_data_ptr<double>(), sum.mutable_data_ptr<double>(),
                                  nullptr) == cudaSuccess);
    }
    const double norm = std::sqrt(sum.item<double>());
    const AdamWOptions options{.learning_rate = 1e-6f,
                               .gradient_scale = static_cast<float>(std::min(1.0, 1.0 / norm)),
                               .step = step};
    for (size_t i = 0; i < weights.size(); ++i) {
      WS_CHECK(LaunchAdamW<Bfloat16>({options, gradients[i].numel(), gradients[i].mutable_data_ptr<float>(),
                                      masters[i].mutable_data_ptr<float>(),
                                      first[i].mutable_data_ptr<float>(), second[i].mutable_data_ptr<float>(),
                                      static_cast<Bfloat16*>(weights[i].mutable_data_ptr())},
                                     nullptr) == cudaSuccess);
    }
    return norm;
  }

  const ParameterLayout& layout;
  std::vector<at::Tensor> weights, masters, gradients, first, second;
  at::Tensor parts, sum;
};

TEST_CASE("the rate of training steps of Qwen3-1.7B, 8,192 tokens each, AdamW and norm included") {
  const ParameterLayout layout(Qwen17B());
  for (const bool deterministic : {false, true}) {
    for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kLayer}) {
      TrainingState state(layout);
      const auto attention = MakeFlashAttention(0, deterministic);
      auto layers = CudaLayers<Bfloat16>::Create(layout.config(),
                                                 {.num_token_ids = layout.config().vocab_size,
                                                  .recomputation = recomputation,
                                                  .head_rows_max = 4096},
                                                 *attention, nullptr);
      REQUIRE(layers.ok());
      std::vector<const Bfloat16*> from;
      std::vector<float*> to;
      for (size_t i = 0; i < state.weights.size(); ++i) {
        from.push_back(static_cast<const Bfloat16*>(state.weights[i].const_data_ptr()));
        to.push_back(state.gradients[i].mutable_data_ptr<float>());
      }
      (*layers)->Bind(from, to);
      const PackedBatch packed = RandomBatch(layout.config(), {4096, 4096}, 9);
      const ScoredBatch batch = NextTokens(packed);
      constexpr int kWarmUps = 3, kSteps = 12;
      double norm = 0, loss = 0, seconds = 0;
      for (int step = 1; step <= kWarmUps + kSteps; ++step) {
        const auto begin = std::chrono::steady_clock::now();
        loss = 0;
        const absl::Status status = AccumulateGradient(**layers, batch, [&](const RowScores& scores) {
          for (const double log_prob : scores.log_probs) loss -= log_prob / 8190;
          return std::vector<double>(scores.log_probs.size(), -1.0 / 8190);
        });
        INFO(status);
        REQUIRE(status.ok());
        norm = state.Update(step);
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
        if (step > kWarmUps) seconds += taken.count() / kSteps;
      }
      size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      std::printf("1.7B, recomputing %s%s: %.1f ms, %.0f tokens/s, loss %.4f, norm %.4f, %.1f GB in use\n",
                  NameOf(recomputation).data(), deterministic ? ", deterministic" : "", seconds * 1e3,
                  8192 / seconds, loss, norm, static_cast<double>(total - free) * 1e-9);
      CHECK(std::isfinite(loss + norm));
    }
  }
}

}  // namespace
}  // namespace warpsmith
