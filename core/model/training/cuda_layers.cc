#include "core/model/training/cuda_layers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/kernels/attention_inputs_cuda.h"
#include "core/kernels/embedding_gather_cuda.h"
#include "core/kernels/swiglu_cuda.h"
#include "core/kernels/training/attention_inputs_gradient_cuda.h"
#include "core/kernels/training/column_sums_cuda.h"
#include "core/kernels/training/embedding_gradient_cuda.h"
#include "core/kernels/training/norm_gradient_cuda.h"
#include "core/kernels/training/swiglu_gradient_cuda.h"
#include "core/model/cuda_status.h"
#include "core/model/training/cuda_calls.h"

namespace warpsmith {
namespace {

constexpr int64_t kWorkspaceBytes = int64_t{64} << 20;
MatrixProduct Adding(MatrixProduct product) {
  product.adds = true;
  return product;
}

absl::Status CheckModel(const ModelConfig& c) {
  const char* reason = nullptr;
  if (c.hidden_size % 8 != 0 || c.hidden_size > 8192)
    reason = "hidden_size is no multiple of 8, or above 8192";
  if (c.vocab_size % 8 != 0) reason = "vocab_size is no multiple of 8";
  if (c.head_dim % 4 != 0 || c.head_dim > 256) reason = "head_dim is no multiple of 4, or above 256";
  if (reason == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a GPU does not train this model: ", reason,
                                                 " (hidden_size ", c.hidden_size, ", vocab_size ",
                                                 c.vocab_size, ", head_dim ", c.head_dim, ")"));
}

}  // namespace

template <typename T>
CudaLayers<T>::CudaLayers(const ModelConfig& config, const CudaLayersOptions& options,
                          TrainingAttention<T>& attention, cudaStream_t stream)
    : BoundLayers<T, float>(config),
      options_(options),
      attention_(attention),
      stream_(stream),
      rotary_(config.head_dim, config.rope_theta, config.rope_scaling) {}

template <typename T>
CudaLayers<T>::~CudaLayers() {
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

template <typename T>
absl::StatusOr<std::unique_ptr<CudaLayers<T>>> CudaLayers<T>::Create(const ModelConfig& config,
                                                                     const CudaLayersOptions& options,
                                                                     TrainingAttention<T>& attention,
                                                                     cudaStream_t stream) {
  RETURN_IF_ERROR(CheckModel(config));
  std::unique_ptr<CudaLayers> layers(new CudaLayers(config, options, attention, stream));
  RETURN_IF_ERROR(CublasStatus(cublasLtCreate(&layers->handle_), "cublasLtCreate"));
  ASSIGN_OR_RETURN(layers->workspace_, DeviceMemory::Zeros(kWorkspaceBytes));
  layers->products_ = std::make_unique<MatrixProducts<T>>(
      layers->handle_, CublasWorkspace{layers->workspace_.get(), static_cast<size_t>(kWorkspaceBytes)});
  layers->head_.emplace(config, options.num_token_ids, options.head_rows_max, *layers->products_, stream);
  return layers;
}

// The batch.

template <typename T>
void CudaLayers<T>::Place() {
  const ModelConfig& c = layout_.config();
  const int64_t n = num_tokens(), d = c.hidden_size;
  const int64_t key_size = c.num_key_value_heads * c.head_dim;
  for (T*& state : states_) state = activations_.Take<T>(n * d);
  shared_.qkv = activations_.Take<T>(KeepsInputs(waits_) ? 0 : n * c.qkv_size());
  shared_.middle = activations_.Take<T>(KeepsInputs(waits_) ? 0 : n * d);
  shared_.gate_up = activations_.Take<T>(KeepsMlp(waits_) ? 0 : n * 2 * c.intermediate_size);
  for (Kept& kept : kept_) {
    kept.qkv = KeepsInputs(waits_) ? activations_.Take<T>(n * c.qkv_size()) : shared_.qkv;
    kept.middle = KeepsInputs(waits_) ? activations_.Take<T>(n * d) : shared_.middle;
    kept.gate_up = KeepsMlp(waits_) ? activations_.Take<T>(n * 2 * c.intermediate_size) : shared_.gate_up;
  }
  shared_.normed = activations_.Take<T>(n * d);
  shared_.queries = activations_.Take<T>(n * c.query_size());
  shared_.keys = activations_.Take<T>(n * key_size);
  shared_.values = activations_.Take<T>(n * key_size);
  shared_.activated = activations_.Take<T>(n * c.intermediate_size);
  batch_.Place(activations_);
  head_->Place(batch_, keeps_, /*keeps_logits=*/keeps_ && KeepsMlp(waits_), activations_);
  if (!keeps_) return;
  shared_.gradient = activations_.Take<T>(n * d);
  shared_.attended_gradient = activations_.Take<T>(n * c.query_size());
  shared_.parts = activations_.Take<float>(NumGradientParts(n) * std::max(d, 2 * c.head_dim));
}

template <typename T>
absl::Status CudaLayers<T>::ReserveRotary() {
  const int64_t wanted = batch_.position_max() + 1;
  if (wanted <= num_positions_) return absl::OkStatus();
  const int64_t reserved = std::max(wanted, 2 * num_positions_);
  const int64_t half = layout_.config().head_dim / 2, bytes = reserved * half * int64_t{sizeof(float)};
  rotary_.Reserve(reserved);
  num_positions_ = 0;
  rotary_memory_ = DeviceMemory();
  ASSIGN_OR_RETURN(rotary_memory_, DeviceMemory::Zeros(2 * bytes));
  RETURN_IF_ERROR(CudaStatus(
      cudaMemcpyAsync(rotary_memory_.get(), rotary_.cosine(0), bytes, cudaMemcpyHostToDevice, stream_),
      "copying cosines"));
  RETURN_IF_ERROR(CudaStatus(
      cudaMemcpyAsync(rotary_memory_.get() + bytes, rotary_.sine(0), bytes, cudaMemcpyHostToDevice, stream_),
      "copying sines"));
  num_positions_ = reserved;
  return absl::OkStatus();
}

template <typename T>
absl::Status CudaLayers<T>::Begin(const ScoredBatch& batch, bool keeps_activations) {
  WS_CHECK(!keeps_activations || !gradients_.empty()) << "a backward pass without sums of gradients";
  keeps_ = keeps_activations;
  waits_ = keeps_ ? options_.recomputation : Recomputation::kLayer;
  batch_.Begin(batch, /*sorts=*/keeps_, layout_.config().vocab_size, options_.num_token_ids);
  states_.assign(keeps_ ? this->num_layers() + 1 : 2, nullptr);
  kept_.clear();
  kept_.resize(keeps_ ? this->num_layers() : 1);
  RETURN_IF_ERROR(activations_.Arrange([&] { Place(); }));
  RETURN_IF_ERROR(batch_.Upload(stream_));
  return ReserveRotary();
}

// Forward.

template <typename T>
absl::Status CudaLayers<T>::Multiply(const MatrixProduct& product, const T* a, const T* b, void* c,
                                     std::string_view what, const void* addend) {
  return warpsmith::Multiply(*products_, product, a, b, c, what, stream_, addend);
}

template <typename T>
absl::Status CudaLayers<T>::Norm(const T* x, const T* weight, T* y) {
  const ModelConfig& c = layout_.config();
  return Normalise(x, weight, num_tokens(), c.hidden_size, c.rms_norm_eps, y, stream_);
}

template <typename T>
absl::Status CudaLayers<T>::Embed() {
  const ModelConfig& c = layout_.config();
  return CudaStatus(LaunchEmbeddingGather<T>(
                        {num_tokens(), c.hidden_size, c.vocab_size, weights_[layout_.embedding_buffer()],
                         batch_.indices().tokens, nullptr, nullptr, State(0)},
                        stream_),
                    "the embedding");
}

template <typename T>
AttentionShape CudaLayers<T>::Shape() const {
  const ModelConfig& c = layout_.config();
  return {&batch_.packed(),      batch_.indices().cu_seqlens, batch_.longest(),
          c.num_attention_heads, c.num_key_value_heads,       c.head_dim};
}

template <typename T>
AttentionInputs<T> CudaLayers<T>::InputsOf(const LayerPointers<const T>& weights, const Kept& kept) const {
  const ModelConfig& c = layout_.config();
  const auto* const cosines = reinterpret_cast<const float*>(rotary_memory_.get());
  return {.rows = num_tokens(),
          .num_kv_heads = c.num_key_value_heads,
          .group_size = c.group_size(),
          .head_dim = c.head_dim,
          .eps = static_cast<float>(c.rms_norm_eps),
          .qkv = kept.qkv,
          .bias = weights.qkv_bias,
          .query_norm = weights.query_norm,
          .key_norm = weights.key_norm,
          .cosines = cosines,
          .sines = cosines + num_positions_ * c.head_dim / 2,
          .positions = batch_.indices().positions};
}

template <typename T>
absl::Status CudaLayers<T>::Qkv(const LayerPointers<const T>& weights, int64_t layer, Kept& kept) {
  const ModelConfig& c = layout_.config();
  RETURN_IF_ERROR(Norm(State(layer), weights.input_norm, shared_.normed));
  return Multiply(LinearForward(num_tokens(), c.qkv_size(), c.hidden_size), shared_.normed, weights.qkv,
                  kept.qkv, "queries, keys and values");
}

// Dense heads: entry e of the keys and values is token e.
template <typename T>
absl::Status CudaLayers<T>::Rotate(const LayerPointers<const T>& weights, const Kept& kept) {
  AttentionInputs<T> inputs = InputsOf(weights, kept);
  inputs.kv_entries = batch_.indices().entries;
  inputs.queries = shared_.queries;
  inputs.key_pages = shared_.keys;
  inputs.value_pages = shared_.values;
  return CudaStatus(LaunchAttentionInputs(inputs, stream_), "attention's inputs");
}

template <typename T>
absl::Status CudaLayers<T>::Attend(const LayerPointers<const T>& weights, Kept& kept) {
  RETURN_IF_ERROR(Rotate(weights, kept));
  ASSIGN_OR_RETURN(kept.attention, attention_.Forward(Shape(), Heads(), stream_));
  return absl::OkStatus();
}

template <typename T>
absl::Status CudaLayers<T>::Middle(const LayerPointers<const T>& weights, int64_t layer, Kept& kept) {
  const ModelConfig& c = layout_.config();
  return Multiply(Adding(LinearForward(num_tokens(), c.hidden_size, c.query_size())), kept.attention.attended,
                  weights.output, kept.middle, "attention's output", State(layer));
}

template <typename T>
absl::Status CudaLayers<T>::GateUp(const LayerPointers<const T>& weights, Kept& kept) {
  const ModelConfig& c = layout_.config();
  RETURN_IF_ERROR(Norm(kept.middle, weights.post_norm, shared_.normed));
  return Multiply(LinearForward(num_tokens(), 2 * c.intermediate_size, c.hidden_size), shared_.normed,
                  weights.gate_up, kept.gate_up, "gate and up");
}

template <typename T>
absl::Status CudaLayers<T>::ForwardLayer(int64_t layer) {
  const ModelConfig& c = layout_.config();
  const LayerPointers<const T> weights = BindLayer(layout_, weights_[layout_.layer_buffer(layer)]);
  Kept& kept = Of(layer);
  RETURN_IF_ERROR(Qkv(weights, layer, kept));
  RETURN_IF_ERROR(Attend(weights, kept));
  RETURN_IF_ERROR(Middle(weights, layer, kept));
  if (!KeepsAttention(waits_)) kept.attention = {};
  RETURN_IF_ERROR(GateUp(weights, kept));
  RETURN_IF_ERROR(CudaStatus(
      LaunchSwiGlu<T>({num_tokens(), c.intermediate_size, kept.gate_up, shared_.activated}, stream_),
      "SwiGLU"));
  return Multiply(Adding(LinearForward(num_tokens(), c.hidden_size, c.intermediate_size)), shared_.activated,
                  weights.down, State(layer + 1), "down", kept.middle);
}

// The head.

template <typename T>
CudaHeadWeights<T> CudaLayers<T>::HeadWeights() const {
  const int final_buffer = layout_.final_buffer();
  const bool tied = layout_.config().tie_word_embeddings;
  const int buffer = tied ? layout_.embedding_buffer() : final_buffer;
  const int64_t norm = layout_.entry(final_buffer, "norm").offset;
  const int64_t head = tied ? 0 : layout_.entry(final_buffer, "head").offset;
  CudaHeadWeights<T> weights = {.norm = weights_[final_buffer] + norm, .head = weights_[buffer] + head};
  if (!keeps_) return weights;
  weights.norm_gradient = gradients_[final_buffer] + norm;
  weights.head_gradient = gradients_[buffer] + head;
  return weights;
}

template <typename T>
absl::Status CudaLayers<T>::Score(RowScores* scores) {
  std::vector<float> log_probs, entropies;
  RETURN_IF_ERROR(head_->Score(HeadWeights(), State(this->num_layers()), &log_probs, &entropies));
  scores->log_probs.assign(num_tokens(), 0.0);
  scores->entropies.assign(num_tokens(), 0.0);
  for (int64_t i = 0; i < batch_.num_scored(); ++i) {
    scores->log_probs[batch_.scored_rows()[i]] = log_probs[i];
    scores->entropies[batch_.scored_rows()[i]] = entropies[i];
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CudaLayers<T>::BackwardHead(const std::vector<double>& log_prob_gradients) {
  std::vector<float> by_row;
  for (const int32_t row : batch_.scored_rows())
    by_row.push_back(static_cast<float>(log_prob_gradients[row]));
  return head_->Backward(HeadWeights(), by_row, shared_.parts, shared_.gradient);
}

// Backward.

// shared_.normed: the gradient of the norm's result before, that result after. shared_.gradient is added to.
template <typename T>
absl::Status CudaLayers<T>::NormBackward(const T* x, const T* weight, float* weight_gradient) {
  const ModelConfig& c = layout_.config();
  return CudaStatus(LaunchNormGradient<T>(
                        {num_tokens(), c.hidden_size, static_cast<float>(c.rms_norm_eps), x, weight,
                         shared_.normed, shared_.gradient, shared_.normed, shared_.parts, weight_gradient},
                        stream_),
                    "the gradient of a norm");
}

template <typename T>
absl::Status CudaLayers<T>::Recompute(const LayerPointers<const T>& weights, int64_t layer, Kept& kept) {
  if (!KeepsInputs(waits_)) RETURN_IF_ERROR(Qkv(weights, layer, kept));
  if (!KeepsAttention(waits_)) RETURN_IF_ERROR(Attend(weights, kept));
  if (!KeepsInputs(waits_)) RETURN_IF_ERROR(Middle(weights, layer, kept));
  if (!KeepsMlp(waits_)) RETURN_IF_ERROR(GateUp(weights, kept));
  return absl::OkStatus();
}

// shared_.gradient: of the layer's output before, of `middle` after.
template <typename T>
absl::Status CudaLayers<T>::BackwardMlp(const LayerPointers<const T>& weights,
                                        const LayerPointers<float>& gradients, const Kept& kept) {
  const ModelConfig& c = layout_.config();
  const int64_t n = num_tokens(), d = c.hidden_size, i = c.intermediate_size;
  RETURN_IF_ERROR(Multiply(LinearInputGradient(n, d, i), shared_.gradient, weights.down, shared_.activated,
                           "the gradient of SwiGLU's result"));
  RETURN_IF_ERROR(
      CudaStatus(LaunchSwiGluGradient<T>(
                     {n, i, kept.gate_up, shared_.activated, kept.gate_up, shared_.activated}, stream_),
                 "the gradient of SwiGLU"));
  RETURN_IF_ERROR(Multiply(LinearWeightGradient(n, d, i), shared_.gradient, shared_.activated, gradients.down,
                           "the gradient of down"));
  RETURN_IF_ERROR(Multiply(LinearInputGradient(n, 2 * i, d), kept.gate_up, weights.gate_up, shared_.normed,
                           "the gradient of the MLP's input"));
  RETURN_IF_ERROR(NormBackward(kept.middle, weights.post_norm, gradients.post_norm));
  return Multiply(LinearWeightGradient(n, 2 * i, d), kept.gate_up, shared_.normed, gradients.gate_up,
                  "the gradient of gate and up");
}

// shared_.gradient: of `middle` before, of the layer's input after.
template <typename T>
absl::Status CudaLayers<T>::BackwardAttention(const LayerPointers<const T>& weights,
                                              const LayerPointers<float>& gradients, int64_t layer,
                                              Kept& kept) {
  const ModelConfig& c = layout_.config();
  const int64_t n = num_tokens(), d = c.hidden_size, q = c.query_size(), p = c.qkv_size();
  RETURN_IF_ERROR(Multiply(LinearInputGradient(n, d, q), shared_.gradient, weights.output,
                           shared_.attended_gradient, "the gradient of attention's result"));
  RETURN_IF_ERROR(Multiply(LinearWeightGradient(n, d, q), shared_.gradient, kept.attention.attended,
                           gradients.output, "the gradient of attention's output"));
  RETURN_IF_ERROR(Rotate(weights, kept));
  ASSIGN_OR_RETURN(const typename TrainingAttention<T>::Gradients of_heads,
                   attention_.Backward(Shape(), Heads(), kept.attention, shared_.attended_gradient, stream_));
  kept.attention = {};
  AttentionInputsGradient<T> inputs;
  inputs.forward = InputsOf(weights, kept);
  inputs.query_grad = of_heads.heads.queries;
  inputs.key_grad = of_heads.heads.keys;
  inputs.value_grad = of_heads.heads.values;
  inputs.qkv_grad = kept.qkv;
  inputs.parts = shared_.parts;
  inputs.query_norm_grad = gradients.query_norm;
  inputs.key_norm_grad = gradients.key_norm;
  RETURN_IF_ERROR(
      CudaStatus(LaunchAttentionInputsGradient(inputs, stream_), "the gradient of attention's inputs"));
  if (gradients.qkv_bias != nullptr) {
    RETURN_IF_ERROR(CudaStatus(LaunchColumnSums<T>({n, p, kept.qkv, gradients.qkv_bias}, stream_),
                               "the gradient of a bias"));
  }
  RETURN_IF_ERROR(Multiply(LinearInputGradient(n, p, d), kept.qkv, weights.qkv, shared_.normed,
                           "the gradient of attention's input"));
  RETURN_IF_ERROR(NormBackward(State(layer), weights.input_norm, gradients.input_norm));
  return Multiply(LinearWeightGradient(n, p, d), kept.qkv, shared_.normed, gradients.qkv,
                  "the gradient of queries, keys and values");
}

template <typename T>
absl::Status CudaLayers<T>::BackwardLayer(int64_t layer) {
  const int buffer = layout_.layer_buffer(layer);
  const LayerPointers<const T> weights = BindLayer(layout_, weights_[buffer]);
  const LayerPointers<float> gradients = BindLayer(layout_, gradients_[buffer]);
  Kept& kept = Of(layer);
  RETURN_IF_ERROR(Recompute(weights, layer, kept));
  RETURN_IF_ERROR(BackwardMlp(weights, gradients, kept));
  return BackwardAttention(weights, gradients, layer, kept);
}

template <typename T>
absl::Status CudaLayers<T>::BackwardEmbedding() {
  return CudaStatus(LaunchEmbeddingGradient<T>({batch_.num_sorted_tokens(), layout_.config().hidden_size,
                                                batch_.indices().sorted_tokens,
                                                batch_.indices().sorted_indptr, batch_.indices().sorted_rows,
                                                shared_.gradient, gradients_[layout_.embedding_buffer()]},
                                               stream_),
                    "the gradient of the embedding");
}

template class CudaLayers<__nv_bfloat16>;
template class CudaLayers<float>;

}  // namespace warpsmith
