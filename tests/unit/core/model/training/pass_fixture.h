// A loss over a batch, its gradients, and models that compute them.
#ifndef WARPSMITH_TESTS_UNIT_CORE_MODEL_TRAINING_PASS_FIXTURE_H_
#define WARPSMITH_TESTS_UNIT_CORE_MODEL_TRAINING_PASS_FIXTURE_H_

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/model/training/training_model.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {

// Weights with every entry away from its default, so that a missing factor shows.
inline Parameters RandomParameters(const ModelConfig& config, at::ScalarType dtype) {
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

inline TrainingModel KernelModel(const ModelConfig& config, at::ScalarType dtype, ThreadPool* pool = nullptr,
                                 Recomputation recomputation = Recomputation::kNone) {
  return TrainingModel::Create(config, Backend::kKernels,
                               {.placement = {.dtype = dtype}, .pool = pool, .recomputation = recomputation})
      .value();
}

inline TrainingModel OperatorModel(const ModelConfig& config, at::ScalarType dtype) {
  return TrainingModel::Create(config, Backend::kOperators, {.placement = {.dtype = dtype}}).value();
}

// Each token is scored behind the one before it.
inline ScoredBatch NextTokens(const PackedBatch& packed) {
  ScoredBatch batch{packed, {packed.tokens.begin() + 1, packed.tokens.end()}, /*temperature=*/0.8};
  batch.targets.push_back(-1);
  for (size_t b = 1; b < packed.cu_seqlens.size(); ++b) batch.targets[packed.cu_seqlens[b] - 1] = -1;
  return batch;
}

// Weights of a sum of log-probabilities; that of a token depends on it and its position alone.
inline std::vector<double> LossWeights(const PackedBatch& batch) {
  std::vector<double> weights;
  for (int64_t t = 0; t < batch.num_tokens(); ++t) {
    weights.push_back(UniformDouble(batch.tokens[t], batch.positions[t]) - 0.3);
  }
  return weights;
}

inline double LossOf(const RowScores& scores, const PackedBatch& batch) {
  const std::vector<double> weights = LossWeights(batch);
  return std::inner_product(weights.begin(), weights.end(), scores.log_probs.begin(), 0.0);
}

inline double Loss(const TrainingModel& model, const Parameters& parameters, const PackedBatch& packed) {
  const ScoredBatch batch = NextTokens(packed);
  return LossOf(model.Score(parameters, batch).value(), packed);
}

struct LossAndGradients {
  double loss = 0;
  std::vector<at::Tensor> gradients;  // by buffer
};

// The parameters' gradients are forgotten before and after.
inline LossAndGradients Accumulated(const TrainingModel& model, Parameters& parameters,
                                    const std::vector<PackedBatch>& parts) {
  LossAndGradients result;
  parameters.ZeroGrad();
  for (const PackedBatch& packed : parts) {
    const ScoredBatch batch = NextTokens(packed);
    const absl::Status status = model.Accumulate(parameters, batch, [&](const RowScores& scores) {
      result.loss += LossOf(scores, packed);
      return LossWeights(packed);
    });
    INFO(status);
    REQUIRE(status.ok());
  }
  for (int i = 0; i < parameters.num_buffers(); ++i) {
    result.gradients.push_back(parameters.buffer(i).grad().clone());
  }
  parameters.ZeroGrad();
  return result;
}

inline double RelativeDifference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

inline double LargestDifference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, RelativeDifference(a[i], b[i]));
  return largest;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_CORE_MODEL_TRAINING_PASS_FIXTURE_H_
