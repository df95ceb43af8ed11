#include "core/model/training/operator_layers.h"

#include <ATen/ops/tensor.h>

#include "core/model/training/run_torch.h"

namespace warpsmith {
namespace {

std::vector<double> ToHost(const at::Tensor& values) {
  const at::Tensor on_host = values.detach().to(at::kCPU, at::kDouble).contiguous();
  return {on_host.const_data_ptr<double>(), on_host.const_data_ptr<double>() + on_host.numel()};
}

}  // namespace

absl::Status OperatorLayers::Begin(const ScoredBatch& batch, bool keeps_activations) {
  batch_ = &batch;
  keeps_ = keeps_activations;
  scores_ = {};
  return RunTorch("a batch", keeps_, [&] {
    state_ = at::Tensor();
    positions_ = at::tensor(batch.packed.positions, at::kLong).to(parameters_->device());
  });
}

absl::Status OperatorLayers::Embed() {
  return RunTorch("the embedding", keeps_, [&] {
    state_ = OperatorEmbedding(*parameters_,
                               at::tensor(batch_->packed.tokens, at::kLong).to(parameters_->device()));
  });
}

absl::Status OperatorLayers::ForwardLayer(int64_t layer) {
  return RunTorch("a layer", keeps_, [&] {
    state_ = OperatorLayer(*parameters_, parameters_->layout().layer_buffer(layer), state_, positions_,
                           batch_->packed);
  });
}

at::Tensor OperatorLayers::Logits() const {
  return OperatorLogits(*parameters_, OperatorFinalNorm(*parameters_, state_));
}

absl::Status OperatorLayers::Score(RowScores* scores) {
  return RunTorch("the head", keeps_, [&] {
    scores_ = OperatorScores(Logits().narrow(1, 0, num_token_ids_), batch_->targets, batch_->temperature);
    scores->log_probs = ToHost(scores_.log_probs);
    scores->entropies = ToHost(scores_.entropy);
  });
}

absl::Status OperatorLayers::BackwardHead(const std::vector<double>& log_prob_gradients) {
  return RunTorch("the backward pass", keeps_, [&] {
    const at::Tensor seed = at::tensor(log_prob_gradients, at::kDouble);
    scores_.log_probs.backward(seed.to(scores_.log_probs.device(), scores_.log_probs.scalar_type()));
    scores_ = {};
    state_ = at::Tensor();
  });
}

}  // namespace warpsmith
