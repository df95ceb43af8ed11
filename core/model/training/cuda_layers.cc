#include "core/model/training/cuda_layers.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/kernels/attention_inputs_cuda.h"
#include "core/kernels/embedding_gather_cuda.h"
#include "core/kernels/residual_norm_cuda.h"
#include "core/kernels/swiglu_cuda.h"
#include "core/kernels/training/attention_inputs_gradient_cuda.h"
#include "core/kernels/training/column_sums_cuda.h"
#include "core/kernels/training/embedding_gradient_cuda.h"
#include "core/kernels/training/norm_gradient_cuda.h"
#include "core/kernels/training/row_scores_cuda.h"
#include "core/kernels/training/swiglu_gradient_cuda.h"
#include "core/model/cuda_status.h"
#include "core/model/event_arrival_cuda.h"

namespace warpsmith {
namespace {

constexpr int64_t kWorkspaceBytes = int64_t{64} << 20;
// A pass over a micro-batch takes seconds at most.
constexpr absl::Duration kPassTimeout = absl::Minutes(10);

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
    : layout_(config),
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
  return layers;
}

template <typename T>
void CudaLayers<T>::Bind(std::vector<const T*> weights, std::vector<float*> gradients) {
  WS_CHECK(static_cast<int>(weights.size()) == layout_.num_buffers() &&
           (gradients.empty() || gradients.size() == weights.size()))
      << weights.size() << " buffers of weights and " << gradients.size() << " of gradients for a layout of "
      << layout_.num_buffers();
  weights_ = std::move(weights);
  gradients_ = std::move(gradients);
}

// The batch.

template <typename T>
void CudaLayers<T>::Place() {
  const ModelConfig& c = layout_.config();
  const int64_t n = num_tokens(), scored = num_scored(), d = c.hidden_size;
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
  const int64_t rows = std::min(options_.head_rows_max, scored);
  scored_.states = activations_.Take<T>(scored * d);
  scored_.hidden = activations_.Take<T>((scored + 1) * d);
  scored_.logits = activations_.Take<float>(rows * c.vocab_size);
  scored_.log_probs = activations_.Take<float>(4 * scored);
  indices_.tokens = activations_.Take<int32_t>(7 * n + 2 * scored + batch_->packed.num_sequences() + 2);
  if (!keeps_) return;
  shared_.gradient = activations_.Take<T>(n * d);
  shared_.attended_gradient = activations_.Take<T>(n * c.query_size());
  shared_.parts = activations_.Take<float>(NumGradientParts(n) * std::max(d, 2 * c.head_dim));
  scored_.hidden_gradient = activations_.Take<T>(scored * d);
  scored_.logit_gradients = activations_.Take<T>(rows * c.vocab_size);
}

// One copy for all that the kernels read of the batch.
template <typename T>
absl::Status CudaLayers<T>::Upload() {
  const PackedBatch& packed = batch_->packed;
  std::vector<int32_t> all;
  const auto append = [&](const auto& values) {
    int32_t* const at = indices_.tokens + all.size();
    for (const auto value : values) all.push_back(static_cast<int32_t>(value));
    return at;
  };
  std::vector<int32_t> targets, places(num_tokens(), static_cast<int32_t>(num_scored()));
  for (int64_t i = 0; i < num_scored(); ++i) {
    targets.push_back(static_cast<int32_t>(batch_->targets[scored_rows_[i]]));
    places[scored_rows_[i]] = static_cast<int32_t>(i);
  }
  std::vector<int32_t> entries(num_tokens());
  std::iota(entries.begin(), entries.end(), 0);
  append(packed.tokens);
  indices_.entries = append(entries);
  indices_.positions = append(packed.positions);
  indices_.cu_seqlens = append(packed.cu_seqlens);
  indices_.rows = append(scored_rows_);
  indices_.targets = append(targets);
  indices_.places = append(places);
  if (keeps_) {
    const RowsByToken sorted = SortByToken(packed.tokens);
    num_sorted_tokens_ = static_cast<int64_t>(sorted.tokens.size());
    indices_.sorted_tokens = append(sorted.tokens);
    indices_.sorted_indptr = append(sorted.indptr);
    indices_.sorted_rows = append(sorted.rows);
  }
  return CudaStatus(cudaMemcpyAsync(indices_.tokens, all.data(), all.size() * sizeof(int32_t),
                                    cudaMemcpyHostToDevice, stream_),
                    "copying a batch's indices");
}

template <typename T>
absl::Status CudaLayers<T>::ReserveRotary() {
  const auto& positions = batch_->packed.positions;
  const int64_t wanted = positions.empty() ? 1 : 1 + *std::max_element(positions.begin(), positions.end());
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
  batch_ = &batch;
  keeps_ = keeps_activations;
  waits_ = keeps_ ? options_.recomputation : Recomputation::kLayer;
  logits_first_ = -1;
  scored_rows_.clear();
  for (int64_t i = 0; i < num_tokens(); ++i) {
    const int64_t token = batch.packed.tokens[i], target = batch.targets[i];
    WS_CHECK(token >= 0 && token < layout_.config().vocab_size)
        << "token " << token << " of a vocabulary of " << layout_.config().vocab_size;
    WS_CHECK(target < options_.num_token_ids)
        << "target " << target << " of a vocabulary of " << options_.num_token_ids;
    if (target >= 0) scored_rows_.push_back(static_cast<int32_t>(i));
  }
  states_.assign(keeps_ ? num_layers() + 1 : 2, nullptr);
  kept_.clear();
  kept_.resize(keeps_ ? num_layers() : 1);
  RETURN_IF_ERROR(activations_.Arrange([&] { Place(); }));
  RETURN_IF_ERROR(Upload());
  return ReserveRotary();
}

// Forward.

template <typename T>
absl::Status CudaLayers<T>::Multiply(const MatrixProduct& product, const T* a, const T* b, void* c,
                                     std::string_view what, const void* addend) {
  return CublasStatus(products_->Launch(product, a, b, c, stream_, addend),
                      absl::StrCat("the product for ", AbslView(what), ", ", product.rows, " x ",
                                   product.columns, " x ", product.depth));
}

template <typename T>
absl::Status CudaLayers<T>::Norm(const T* x, const T* weight, int64_t rows, T* y) {
  const auto eps = static_cast<float>(layout_.config().rms_norm_eps);
  return CudaStatus(LaunchResidualNorm<T>({rows, layout_.config().hidden_size, eps, const_cast<T*>(x),
                                           /*delta=*/nullptr, weight, y},
                                          stream_),
                    "a norm");
}

template <typename T>
absl::Status CudaLayers<T>::Embed() {
  const ModelConfig& c = layout_.config();
  return CudaStatus(LaunchEmbeddingGather<T>(
                        {num_tokens(), c.hidden_size, c.vocab_size, weights_[layout_.embedding_buffer()],
                         indices_.tokens, nullptr, nullptr, State(0)},
                        stream_),
                    "the embedding");
}

template <typename T>
AttentionShape CudaLayers<T>::Shape() const {
  const ModelConfig& c = layout_.config();
  const std::vector<int64_t>& offsets = batch_->packed.cu_seqlens;
  AttentionShape shape = {&batch_->packed,       indices_.cu_seqlens,   0,
                          c.num_attention_heads, c.num_key_value_heads, c.head_dim};
  for (size_t i = 1; i < offsets.size(); ++i) {
    shape.longest = std::max(shape.longest, offsets[i] - offsets[i - 1]);
  }
  return shape;
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
          .positions = indices_.positions};
}

template <typename T>
absl::Status CudaLayers<T>::Qkv(const LayerPointers<const T>& weights, int64_t layer, Kept& kept) {
  const ModelConfig& c = layout_.config();
  RETURN_IF_ERROR(Norm(State(layer), weights.input_norm, num_tokens(), shared_.normed));
  return Multiply(LinearForward(num_tokens(), c.qkv_size(), c.hidden_size), shared_.normed, weights.qkv,
                  kept.qkv, "queries, keys and values");
}

// Dense heads: entry e of the keys and values is token e.
template <typename T>
absl::Status CudaLayers<T>::Rotate(const LayerPointers<const T>& weights, const Kept& kept) {
  AttentionInputs<T> inputs = InputsOf(weights, kept);
  inputs.kv_entries = indices_.entries;
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
  RETURN_IF_ERROR(Norm(kept.middle, weights.post_norm, num_tokens(), shared_.normed));
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
int CudaLayers<T>::head_buffer() const {
  return layout_.config().tie_word_embeddings ? layout_.embedding_buffer() : layout_.final_buffer();
}

template <typename T>
int64_t CudaLayers<T>::head_offset() const {
  return layout_.config().tie_word_embeddings ? 0 : layout_.entry(layout_.final_buffer(), "head").offset;
}

template <typename T>
absl::Status CudaLayers<T>::Logits(int64_t first, int64_t rows) {
  if (logits_first_ == first) return absl::OkStatus();
  const ModelConfig& c = layout_.config();
  MatrixProduct product = LinearForward(rows, c.vocab_size, c.hidden_size);
  product.in_float32 = true;
  RETURN_IF_ERROR(Multiply(product, scored_.hidden + first * c.hidden_size,
                           weights_[head_buffer()] + head_offset(), scored_.logits, "logits"));
  logits_first_ = first;
  return absl::OkStatus();
}

template <typename T>
RowScoring CudaLayers<T>::ScoringOf(int64_t first, int64_t rows) const {
  return {rows,
          options_.num_token_ids,
          layout_.config().vocab_size,
          static_cast<float>(1.0 / batch_->temperature),
          scored_.logits,
          indices_.targets + first,
          scored_.log_probs + first,
          scored_.log_probs + num_scored() + first,
          scored_.log_probs + 2 * num_scored() + first};
}

template <typename T>
absl::Status CudaLayers<T>::Score(RowScores* scores) {
  const int64_t scored = num_scored(), d = layout_.config().hidden_size;
  scores->log_probs.assign(num_tokens(), 0.0);
  scores->entropies.assign(num_tokens(), 0.0);
  if (scored == 0) return absl::OkStatus();
  RETURN_IF_ERROR(CudaStatus(LaunchEmbeddingGather<T>({scored, d, num_tokens(), State(num_layers()),
                                                       indices_.rows, nullptr, nullptr, scored_.states},
                                                      stream_),
                             "gathering scored rows"));
  const T* const norm =
      weights_[layout_.final_buffer()] + layout_.entry(layout_.final_buffer(), "norm").offset;
  RETURN_IF_ERROR(Norm(scored_.states, norm, scored, scored_.hidden));
  for (int64_t first = 0; first < scored; first += options_.head_rows_max) {
    const int64_t rows = std::min(options_.head_rows_max, scored - first);
    RETURN_IF_ERROR(Logits(first, rows));
    RETURN_IF_ERROR(CudaStatus(LaunchRowScoring(ScoringOf(first, rows), stream_), "scoring"));
  }
  std::vector<float> found(2 * scored);
  RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(found.data(), scored_.log_probs, found.size() * sizeof(float),
                                             cudaMemcpyDeviceToHost, stream_),
                             "copying scores"));
  RETURN_IF_ERROR(AwaitStream(stream_, absl::Now() + kPassTimeout));
  for (int64_t i = 0; i < scored; ++i) {
    scores->log_probs[scored_rows_[i]] = found[i];
    scores->entropies[scored_rows_[i]] = found[scored + i];
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CudaLayers<T>::BackwardHead(const std::vector<double>& log_prob_gradients) {
  const ModelConfig& c = layout_.config();
  const int64_t scored = num_scored(), d = c.hidden_size, most = options_.head_rows_max;
  std::vector<float> by_row;
  for (const int32_t row : scored_rows_) by_row.push_back(static_cast<float>(log_prob_gradients[row]));
  float* const gradients = scored_.log_probs + 3 * scored;
  RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(gradients, by_row.data(), by_row.size() * sizeof(float),
                                             cudaMemcpyHostToDevice, stream_),
                             "copying gradients of log-probabilities"));
  // Backwards: the logits of the last rows are still there.
  for (int64_t first = (scored - 1) / most * most; scored > 0 && first >= 0; first -= most) {
    const int64_t rows = std::min(most, scored - first);
    RETURN_IF_ERROR(Logits(first, rows));
    RETURN_IF_ERROR(
        CudaStatus(LaunchRowScoringGradient<T>(
                       {ScoringOf(first, rows), gradients + first, scored_.logit_gradients}, stream_),
                   "the gradient of logits"));
    RETURN_IF_ERROR(Multiply(LinearInputGradient(rows, c.vocab_size, d), scored_.logit_gradients,
                             weights_[head_buffer()] + head_offset(), scored_.hidden_gradient + first * d,
                             "the gradient of hidden states"));
    RETURN_IF_ERROR(Multiply(LinearWeightGradient(rows, c.vocab_size, d), scored_.logit_gradients,
                             scored_.hidden + first * d, gradients_[head_buffer()] + head_offset(),
                             "the gradient of the head"));
  }
  // The hidden states are needed no more: their place takes the gradient of the scored states, and a row of zeros.
  RETURN_IF_ERROR(
      CudaStatus(cudaMemsetAsync(scored_.hidden, 0, (scored + 1) * d * sizeof(T), stream_), "cudaMemset"));
  const int64_t norm = layout_.entry(layout_.final_buffer(), "norm").offset;
  const int buffer = layout_.final_buffer();
  RETURN_IF_ERROR(
      CudaStatus(LaunchNormGradient<T>({scored, d, static_cast<float>(c.rms_norm_eps), scored_.states,
                                        weights_[buffer] + norm, scored_.hidden_gradient, scored_.hidden,
                                        /*y=*/nullptr, shared_.parts, gradients_[buffer] + norm},
                                       stream_),
                 "the gradient of the final norm"));
  return CudaStatus(LaunchEmbeddingGather<T>({num_tokens(), d, scored + 1, scored_.hidden, indices_.places,
                                              nullptr, nullptr, shared_.gradient},
                                             stream_),
                    "spreading scored rows");
}

// Backward.

template <typename T>
absl::Status CudaLayers<T>::NormBackward(const T* x, const T* weight, int64_t rows, T* y_gradient,
                                         T* x_gradient, float* weight_gradient) {
  const auto eps = static_cast<float>(layout_.config().rms_norm_eps);
  return CudaStatus(LaunchNormGradient<T>({rows, layout_.config().hidden_size, eps, x, weight, y_gradient,
                                           x_gradient, y_gradient, shared_.parts, weight_gradient},
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
  RETURN_IF_ERROR(
      NormBackward(kept.middle, weights.post_norm, n, shared_.normed, shared_.gradient, gradients.post_norm));
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
  RETURN_IF_ERROR(NormBackward(State(layer), weights.input_norm, n, shared_.normed, shared_.gradient,
                               gradients.input_norm));
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
  return CudaStatus(
      LaunchEmbeddingGradient<T>(
          {num_sorted_tokens_, layout_.config().hidden_size, indices_.sorted_tokens, indices_.sorted_indptr,
           indices_.sorted_rows, shared_.gradient, gradients_[layout_.embedding_buffer()]},
          stream_),
      "the gradient of the embedding");
}

template class CudaLayers<__nv_bfloat16>;
template class CudaLayers<float>;

}  // namespace warpsmith
