// A decoder's training pass out of Torch's operators and autograd, on any device: the reference for the kernels.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_OPERATOR_LAYERS_H_
#define WARPSMITH_CORE_MODEL_TRAINING_OPERATOR_LAYERS_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/model/operator_model.h"
#include "core/model/parameters.h"
#include "core/model/training/layer_compute.h"

namespace warpsmith {

// Autograd keeps what it needs, and computes the whole backward pass in BackwardHead; the calls after it do nothing.
class OperatorLayers final : public LayerCompute {
 public:
  // `num_token_ids`: see CpuLayers.
  OperatorLayers(const ModelConfig& config, int64_t num_token_ids)
      : num_layers_(config.num_hidden_layers), num_token_ids_(num_token_ids) {}

  // Names the weights of the passes to come, whose .grad the gradient is added to. They outlive the passes.
  void Bind(const Parameters* parameters) { parameters_ = parameters; }

  int64_t num_layers() const override { return num_layers_; }
  absl::Status Begin(const ScoredBatch& batch, bool keeps_activations) override;
  absl::Status Embed() override;
  absl::Status ForwardLayer(int64_t layer) override;
  absl::Status Score(RowScores* scores) override;
  absl::Status BackwardHead(const std::vector<double>& log_prob_gradients) override;
  absl::Status BackwardLayer(int64_t) override { return absl::OkStatus(); }
  absl::Status BackwardEmbedding() override { return absl::OkStatus(); }

  // Returns the logits [T, V] of all rows, padding included, once the last layer has been computed. For tests.
  at::Tensor Logits() const;

 private:
  const int64_t num_layers_;
  const int64_t num_token_ids_;
  const Parameters* parameters_ = nullptr;

  // State of the pass under way.
  const ScoredBatch* batch_ = nullptr;
  bool keeps_ = false;
  at::Tensor state_;      // [T, D]
  at::Tensor positions_;  // [T]
  TokenScores scores_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_OPERATOR_LAYERS_H_
