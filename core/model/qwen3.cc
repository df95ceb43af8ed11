#include "core/model/qwen3.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "core/base/check.h"
#include "core/model/operator_model.h"
#include "core/model/training_functions.h"

namespace warpsmith {
namespace {

void CheckBatch(const PackedBatch& batch) {
  WS_CHECK(batch.positions.size() == batch.tokens.size() && !batch.cu_seqlens.empty() &&
           batch.cu_seqlens.back() == batch.num_tokens())
      << "packed batch of " << batch.tokens.size() << " tokens, " << batch.positions.size() << " positions, "
      << batch.cu_seqlens.size() << " boundaries";
}

int HeadBuffer(const ParameterLayout& layout) {
  return layout.config().tie_word_embeddings ? layout.embedding_buffer() : layout.final_buffer();
}

int64_t HeadOffset(const ParameterLayout& layout) {
  return layout.config().tie_word_embeddings ? 0 : layout.entry(layout.final_buffer(), "head").offset;
}

template <typename A>
at::Tensor KernelForward(const TrainingCorePointer<A>& core, const Parameters& parameters,
                         const PackedBatch& batch) {
  const auto shared = std::make_shared<const PackedBatch>(batch);
  at::Tensor x = ApplyEmbedding<A>(core, shared, parameters.buffer(core->layout.embedding_buffer()));
  for (int64_t layer = 0; layer < core->layout.config().num_hidden_layers; ++layer) {
    x = ApplyLayer<A>(core, shared, x, parameters.buffer(core->layout.layer_buffer(layer)));
  }
  return ApplyFinalNorm<A>(core, x, parameters.buffer(core->layout.final_buffer()));
}

template <typename A>
TokenScores KernelScores(const TrainingCorePointer<A>& core, const Parameters& parameters,
                         const at::Tensor& hidden, const std::vector<int64_t>& targets, double temperature) {
  const ParameterLayout& layout = core->layout;
  const std::vector<at::Tensor> scores = ApplyScoring<A>(core, hidden, parameters.buffer(HeadBuffer(layout)),
                                                         HeadOffset(layout), targets, temperature);
  return {scores[0], scores[1]};
}

TokenScores OperatorScores(const at::Tensor& logits, const std::vector<int64_t>& targets,
                           double temperature) {
  const at::Tensor target = at::tensor(targets, at::TensorOptions(at::kLong)).to(logits.device());
  const at::Tensor log_softmax = at::log_softmax(logits / temperature, -1);
  const at::Tensor kept = target >= 0;
  const at::Tensor log_probs = log_softmax.gather(1, target.clamp_min(0).unsqueeze(1)).squeeze(1);
  const at::Tensor entropy = -(log_softmax.exp() * log_softmax).sum(-1).detach();
  return {at::where(kept, log_probs, at::zeros_like(log_probs)),
          at::where(kept, entropy, at::zeros_like(entropy))};
}

}  // namespace

struct Qwen3::State {
  State(const ModelConfig& config, Qwen3Options options)
      : options(options),
        num_token_ids(NumTokenIds(config, options.num_token_ids)),
        floats(std::make_shared<TrainingCore<float>>(config, num_token_ids, options.pool)),
        doubles(std::make_shared<TrainingCore<double>>(config, num_token_ids, options.pool)) {}

  bool UsesKernels(const Parameters& parameters) const {
    const bool has_kernels = parameters.device().is_cpu() &&
                             (parameters.dtype() == at::kFloat || parameters.dtype() == at::kDouble);
    return options.backend == Backend::kAuto && has_kernels;
  }

  Qwen3Options options;
  int64_t num_token_ids;
  TrainingCorePointer<float> floats;
  TrainingCorePointer<double> doubles;
};

Qwen3::Qwen3(const ModelConfig& config, Qwen3Options options)
    : state_(std::make_unique<State>(config, options)) {}
Qwen3::~Qwen3() = default;
Qwen3::Qwen3(Qwen3&&) noexcept = default;
Qwen3& Qwen3::operator=(Qwen3&&) noexcept = default;

at::Tensor Qwen3::Forward(const Parameters& parameters, const PackedBatch& batch) const {
  CheckBatch(batch);
  WS_CHECK(parameters.config() == state_->floats->layout.config()) << "parameters of another configuration";
  if (!state_->UsesKernels(parameters)) return OperatorForward(parameters, batch);
  if (parameters.dtype() == at::kFloat) return KernelForward<float>(state_->floats, parameters, batch);
  return KernelForward<double>(state_->doubles, parameters, batch);
}

TokenScores Qwen3::TokenLogProbs(const Parameters& parameters, const at::Tensor& hidden,
                                 const std::vector<int64_t>& targets, double temperature) const {
  WS_CHECK(hidden.size(0) == static_cast<int64_t>(targets.size()) && temperature > 0)
      << hidden.size(0) << " hidden states, " << targets.size() << " targets, temperature " << temperature;
  if (!state_->UsesKernels(parameters))
    return OperatorScores(Logits(parameters, hidden).narrow(1, 0, state_->num_token_ids), targets,
                          temperature);
  if (parameters.dtype() == at::kFloat) {
    return KernelScores<float>(state_->floats, parameters, hidden, targets, temperature);
  }
  return KernelScores<double>(state_->doubles, parameters, hidden, targets, temperature);
}

at::Tensor Qwen3::Logits(const Parameters& parameters, const at::Tensor& hidden) const {
  return at::linear(hidden, HeadWeight(parameters));
}

}  // namespace warpsmith
