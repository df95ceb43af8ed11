#include "core/model/training/cpu_layers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace warpsmith {

template <typename T>
CpuLayers<T>::CpuLayers(const ModelConfig& config, int64_t num_token_ids, ThreadPool* pool,
                        Recomputation recomputation)
    : BoundLayers<T, T>(config),
      num_token_ids_(num_token_ids),
      pool_(pool),
      recomputation_(recomputation),
      layer_(layout_, pool),
      scoring_(pool),
      memory_(std::make_shared<ActivationPool>()),
      states_(config.num_hidden_layers + 1),
      kept_(config.num_hidden_layers) {}

template <typename T>
typename CpuLayers<T>::Block CpuLayers<T>::TakeZeros(int64_t size) {
  Block block = Take(size);
  std::memset(block.get(), 0, size * sizeof(T));
  return block;
}

template <typename T>
LayerActivations<T> CpuLayers<T>::Activations(int64_t layer) const {
  return LayerActivations<T>::Bind(layout_.config(), num_tokens(), waits_, At(kept_[layer]), At(shared_));
}

template <typename T>
absl::Status CpuLayers<T>::Begin(const ScoredBatch& batch, bool keeps_activations) {
  const ModelConfig& c = layout_.config();
  for (std::vector<Block>* blocks : {&states_, &kept_}) {
    for (Block& block : *blocks) block.reset();
  }
  batch_ = &batch;
  keeps_ = keeps_activations;
  waits_ = keeps_ ? recomputation_ : Recomputation::kLayer;
  shared_ = Take(LayerActivations<T>::SharedSize(c, num_tokens(), waits_));
  return absl::OkStatus();
}

template <typename T>
absl::Status CpuLayers<T>::Embed() {
  const int64_t d = layout_.config().hidden_size, v = layout_.config().vocab_size;
  const T* const table = weights_[layout_.embedding_buffer()];
  states_[0] = Take(state_size());
  for (int64_t t = 0; t < num_tokens(); ++t) {
    const int64_t token = packed().tokens[t];
    WS_CHECK(token >= 0 && token < v) << "token " << token << " of a vocabulary of " << v;
    std::copy_n(table + token * d, d, At(states_[0]) + t * d);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CpuLayers<T>::ForwardLayer(int64_t layer) {
  kept_[layer] = Take(LayerActivations<T>::KeptSize(layout_.config(), num_tokens(), waits_));
  states_[layer + 1] = Take(state_size());
  layer_.Forward(weights_[layout_.layer_buffer(layer)], packed(), At(states_[layer]), Activations(layer),
                 At(states_[layer + 1]));
  if (!keeps_) states_[layer].reset();
  return absl::OkStatus();
}

template <typename T>
const T* CpuLayers<T>::FinalNormWeight() const {
  return weights_[layout_.final_buffer()] + layout_.entry(layout_.final_buffer(), "norm").offset;
}

template <typename T>
void CpuLayers<T>::FinalNorm() {
  const int64_t d = layout_.config().hidden_size;
  const T eps = static_cast<T>(layout_.config().rms_norm_eps);
  hidden_ = Take(state_size());
  const T* const x = At(states_.back());
  for (int64_t r = 0; r < num_tokens(); ++r) {
    Kernels<T>().rms_norm(x + r * d, FinalNormWeight(), d, eps, At(hidden_) + r * d);
  }
}

template <typename T>
int CpuLayers<T>::head_buffer() const {
  return layout_.config().tie_word_embeddings ? layout_.embedding_buffer() : layout_.final_buffer();
}

template <typename T>
int64_t CpuLayers<T>::head_offset() const {
  return layout_.config().tie_word_embeddings ? 0 : layout_.entry(layout_.final_buffer(), "head").offset;
}

template <typename T>
ScoringInput<T> CpuLayers<T>::Input() const {
  ScoringInput<T> input{weights_[head_buffer()] + head_offset(),
                        num_token_ids_,
                        layout_.config().hidden_size,
                        At(hidden_),
                        {},
                        {},
                        static_cast<T>(batch_->temperature)};
  for (int64_t i = 0; i < num_tokens(); ++i) {
    const int64_t target = batch_->targets[i];
    if (target < 0) continue;
    WS_CHECK(target < num_token_ids_) << "target " << target << " of a vocabulary of " << num_token_ids_;
    input.rows.push_back(i);
    input.targets.push_back(target);
  }
  return input;
}

template <typename T>
absl::Status CpuLayers<T>::Score(RowScores* scores) {
  FinalNorm();
  input_ = Input();
  log_sum_exp_.resize(input_.rows.size());
  std::vector<T> log_probs(num_tokens()), entropies(num_tokens());
  scoring_.Forward(input_, log_probs.data(), entropies.data(), log_sum_exp_.data());
  scores->log_probs.assign(log_probs.begin(), log_probs.end());
  scores->entropies.assign(entropies.begin(), entropies.end());
  return absl::OkStatus();
}

template <typename T>
absl::Status CpuLayers<T>::BackwardHead(const std::vector<double>& log_prob_gradients) {
  const int64_t d = layout_.config().hidden_size;
  const T eps = static_cast<T>(layout_.config().rms_norm_eps);
  const std::vector<T> gradients(log_prob_gradients.begin(), log_prob_gradients.end());
  const Block hidden_gradient = TakeZeros(state_size());
  scoring_.Backward(input_, log_sum_exp_.data(), gradients.data(), At(hidden_gradient),
                    gradients_[head_buffer()] + head_offset());
  hidden_.reset();
  gradient_ = TakeZeros(state_size());
  T* const norm_gradient =
      gradients_[layout_.final_buffer()] + layout_.entry(layout_.final_buffer(), "norm").offset;
  for (int64_t r = 0; r < num_tokens(); ++r) {
    Kernels<T>().rms_norm_gradient(At(states_.back()) + r * d, FinalNormWeight(), At(hidden_gradient) + r * d,
                                   d, eps, At(gradient_) + r * d, norm_gradient);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CpuLayers<T>::BackwardLayer(int64_t layer) {
  const int buffer = layout_.layer_buffer(layer);
  const LayerActivations<T> activations = Activations(layer);
  layer_.Recompute(weights_[buffer], packed(), At(states_[layer]), activations, waits_);
  Block input_gradient = Take(state_size());
  layer_.Backward(weights_[buffer], packed(), At(states_[layer]), activations, At(gradient_),
                  At(input_gradient), gradients_[buffer]);
  gradient_ = std::move(input_gradient);
  states_[layer + 1].reset();
  kept_[layer].reset();
  return absl::OkStatus();
}

template <typename T>
absl::Status CpuLayers<T>::BackwardEmbedding() {
  const int64_t d = layout_.config().hidden_size;
  T* const table = gradients_[layout_.embedding_buffer()];
  for (int64_t t = 0; t < num_tokens(); ++t) {
    Kernels<T>().add(At(gradient_) + t * d, d, table + packed().tokens[t] * d);
  }
  gradient_.reset();
  return absl::OkStatus();
}

template <typename T>
void CpuLayers<T>::Logits(T* logits) {
  const ModelConfig& c = layout_.config();
  FinalNorm();
  PackedMatrix<T> head;
  head.Pack(weights_[head_buffer()] + head_offset(), c.vocab_size, c.hidden_size, pool_);
  head.Apply(At(hidden_), c.hidden_size, num_tokens(), logits, c.vocab_size, ProductMode::kStore);
}

template class CpuLayers<float>;
template class CpuLayers<double>;

}  // namespace warpsmith
