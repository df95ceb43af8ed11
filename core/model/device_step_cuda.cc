#include "core/model/device_step_cuda.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/kernels/decode_attention_cuda.h"
#include "core/kernels/depth_parts.h"
#include "core/kernels/embedding_gather_cuda.h"
#include "core/kernels/residual_norm_cuda.h"
#include "core/kernels/streamed_linear_cuda.h"
#include "core/kernels/swiglu_cuda.h"
#include "core/model/cuda_status.h"
#include "core/model/device_attention_cuda.h"
#include "core/model/device_memory.h"
#include "core/model/device_products_cuda.h"
#include "core/model/stored_type_cuda.h"

namespace warpsmith {

namespace {

// T is what is stored.
template <typename T>
struct LauncherOf final : DeviceStepLauncher {
  LauncherOf(const DeviceDecoderOptions& options, const DeviceWeights& weights, const DeviceScratch& places,
             std::byte* scratch, std::byte* pages);
  ~LauncherOf() override {
    if (handle != nullptr) cublasLtDestroy(handle);
  }

  // Chooses algorithms for what has plans.
  absl::Status Prepare();
  bool HasPlans() const { return !kStreamsProducts<T> || !batch_invariant(); }

  absl::Status Launch(const DeviceStep& step, cudaStream_t stream) const override;
  const float* logits() const override { return FloatsAt(places.logits); }

  T* At(int64_t place) const { return reinterpret_cast<T*>(scratch + place); }
  float* FloatsAt(int64_t place) const { return reinterpret_cast<float*>(scratch + place); }

  absl::Status CheckCounts(const DeviceStep& step) const;
  absl::Status Embed(const DeviceStep& step, cudaStream_t stream) const;
  absl::Status Norm(const T* weight, bool follows_product, const DeviceStep& step, cudaStream_t stream) const;
  NextStart NextOf(const DeviceStep& step) const;
  absl::Status Exchange(const DeviceStep& step, cudaStream_t stream) const;
  bool batch_invariant() const { return options.row_buckets.size() == 1; }
  bool is_whole() const { return options.shard.is_whole(); }
  absl::Status Attend(int64_t layer, const DeviceStep& step, cudaStream_t stream) const;
  absl::Status Gate(int64_t layer, const DeviceStep& step, cudaStream_t stream) const;
  absl::Status FeedForward(int64_t layer, const DeviceStep& step, cudaStream_t stream) const;
  absl::Status GatherLast(const T* from, T* to, const DeviceStep& step, cudaStream_t stream) const;
  absl::Status LastNorm(const DeviceStep& step, cudaStream_t stream) const;
  absl::Status Logits(const DeviceStep& step, cudaStream_t stream) const;

  // What each product multiplies, of `layer`.
  LinearOperandsOf<T> QkvOperands(int64_t layer) const;
  LinearOperandsOf<T> OutputOperands(int64_t layer, int64_t rows) const;
  LinearOperandsOf<T> GateUpOperands(int64_t layer) const;
  LinearOperandsOf<T> DownOperands(int64_t layer, int64_t rows) const;
  LinearOperandsOf<T> SummedOperands(int64_t x, const T* weight, int64_t rows) const;
  LinearOperandsOf<T> HeadOperands() const;

  const ModelConfig config;
  const DeviceDecoderOptions options;
  const DeviceScratch places;
  std::byte* const scratch;
  T* const pages;
  const float eps;

  const T* embedding = nullptr;
  const T* final_norm = nullptr;
  const T* head = nullptr;
  std::vector<LayerAddresses<T>> layers;

  LinearShape qkv_shape, output_shape, gate_up_shape, down_shape, head_shape;
  cublasLtHandle_t handle = nullptr;
  DeviceProducts<T> layer_products, head_products;
};

template <typename T>
LauncherOf<T>::LauncherOf(const DeviceDecoderOptions& options, const DeviceWeights& weights,
                          const DeviceScratch& places, std::byte* scratch, std::byte* pages)
    : config(weights.layout().config()),
      options(options),
      places(places),
      scratch(scratch),
      pages(reinterpret_cast<T*>(pages)),
      eps(static_cast<float>(config.rms_norm_eps)) {
  const ParameterLayout& layout = weights.layout();
  embedding = weights.Find<T>(layout.embedding_buffer(), "embedding");
  final_norm = weights.Find<T>(layout.final_buffer(), "norm");
  head = config.tie_word_embeddings ? embedding : weights.Find<T>(layout.final_buffer(), "head");
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer)
    layers.push_back(weights.FindLayer<T>(layer));
  const auto layer_shape = [](int64_t columns, int64_t depth, bool has_residual = false) {
    return LinearShape{
        .columns = columns, .depth = depth, .has_residual = has_residual, .output = kStoredOutput<T>};
  };
  qkv_shape = layer_shape(config.qkv_size(), config.hidden_size);
  output_shape = layer_shape(config.hidden_size, config.query_size(), is_whole());
  gate_up_shape = layer_shape(2 * config.intermediate_size, config.hidden_size);
  down_shape = layer_shape(config.hidden_size, config.intermediate_size, is_whole());
  head_shape = {.columns = LogitsStride(config, options.num_token_ids),
                .depth = config.hidden_size,
                .output = LinearOutput::kFloat32};
}

template <typename T>
LinearOperandsOf<T> LauncherOf<T>::QkvOperands(int64_t layer) const {
  return {.x = At(places.normed), .weight = layers[layer].qkv, .y = At(places.qkv)};
}

// Into the residual; of a shard into its row of partial sums.
template <typename T>
LinearOperandsOf<T> LauncherOf<T>::SummedOperands(int64_t x, const T* weight, int64_t rows) const {
  if (is_whole()) return {.x = At(x), .weight = weight, .residual = At(places.x), .y = At(places.x)};
  return {.x = At(x),
          .weight = weight,
          .y = At(places.partials) + options.shard.index * rows * config.hidden_size};
}

template <typename T>
LinearOperandsOf<T> LauncherOf<T>::OutputOperands(int64_t layer, int64_t rows) const {
  return SummedOperands(places.attended, layers[layer].output, rows);
}

template <typename T>
LinearOperandsOf<T> LauncherOf<T>::GateUpOperands(int64_t layer) const {
  return {.x = At(places.normed), .weight = layers[layer].gate_up, .y = At(places.gate_up)};
}

template <typename T>
LinearOperandsOf<T> LauncherOf<T>::DownOperands(int64_t layer, int64_t rows) const {
  return SummedOperands(places.activated, layers[layer].down, rows);
}

template <typename T>
LinearOperandsOf<T> LauncherOf<T>::HeadOperands() const {
  return {.x = At(places.last_normed), .weight = head, .y = At(places.logits)};
}

// The head has buckets of its own: with those of the rows it would want logits for all of them.
template <typename T>
absl::Status LauncherOf<T>::Prepare() {
  if (!HasPlans()) return absl::OkStatus();
  RETURN_IF_ERROR(CublasStatus(cublasLtCreate(&handle), "cublasLtCreate"));
  const CublasWorkspace workspace = {scratch + places.products, static_cast<size_t>(kProductWorkspaceBytes)};
  const auto products_of = [&](const std::vector<int64_t>& buckets) {
    const DepthSplit split = batch_invariant() ? DepthSplit::kNever : DepthSplit::kAllowed;
    const int64_t streamed = kStreamsProducts<T> ? StreamedRowsMax(buckets) : 0;
    return DeviceProducts<T>{
        std::make_unique<LinearPlansOf<T>>(handle, workspace, BucketsBeyond(buckets, streamed), split,
                                           kStepSearchOf<T>),
        streamed};
  };
  layer_products = products_of(options.row_buckets);
  head_products = products_of(LogitsRowBuckets(options));

  int64_t evicted_bytes = 0;
  ASSIGN_OR_RETURN(const DeviceMemory evicted, EvictingMemory(options.device, evicted_bytes));
  const CublasWorkspace cache = {evicted.get(), static_cast<size_t>(evicted_bytes)};
  const auto prepare = [&](LinearPlansOf<T>& plans, const LinearShape& shape,
                           const LinearOperandsOf<T>& operands) {
    return CublasStatus(
        plans.Prepare(shape, operands, cache, nullptr),
        absl::StrCat("choosing a product of ", shape.columns, " columns and depth ", shape.depth));
  };
  RETURN_IF_ERROR(prepare(*layer_products.plans, qkv_shape, QkvOperands(0)));
  RETURN_IF_ERROR(prepare(*layer_products.plans, output_shape, OutputOperands(0, options.rows_max)));
  RETURN_IF_ERROR(prepare(*layer_products.plans, gate_up_shape, GateUpOperands(0)));
  RETURN_IF_ERROR(prepare(*layer_products.plans, down_shape, DownOperands(0, options.rows_max)));
  return prepare(*head_products.plans, head_shape, HeadOperands());
}

template <typename T>
absl::Status LauncherOf<T>::CheckCounts(const DeviceStep& step) const {
  if (step.num_rows >= 0 && step.num_rows <= options.rows_max && step.num_logits_rows >= 0 &&
      step.num_logits_rows <= options.logits_rows_max && step.num_queries >= 0 &&
      step.num_queries <= step.num_rows &&
      (step.rows_of_query_max > 1 || step.num_rows <= options.logits_rows_max)) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("decoder on a GPU: a step of ", step.num_rows, " rows, ",
                                          step.num_queries, " queries and ", step.num_logits_rows,
                                          " rows of logits; it was made for ", options.rows_max, " rows and ",
                                          options.logits_rows_max, " of logits"));
}

template <typename T>
absl::Status LauncherOf<T>::Embed(const DeviceStep& step, cudaStream_t stream) const {
  return CudaStatus(LaunchEmbeddingGather<T>({.rows = step.num_rows,
                                              .size = config.hidden_size,
                                              .num_tokens = config.vocab_size,
                                              .embedding = embedding,
                                              .token_ids = step.token_ids,
                                              .token_slots = step.token_slots,
                                              .last_tokens = step.last_tokens,
                                              .x = At(places.x)},
                                             stream),
                    "launch of the embedding");
}

// Of a shard it adds the sums of the product that it follows.
template <typename T>
absl::Status LauncherOf<T>::Norm(const T* weight, bool follows_product, const DeviceStep& step,
                                 cudaStream_t stream) const {
  const bool adds = follows_product && !is_whole();
  return CudaStatus(
      LaunchResidualNorm<T>({.rows = step.num_rows,
                             .size = config.hidden_size,
                             .eps = eps,
                             .x = At(places.x),
                             .delta = adds ? At(places.partials) : nullptr,
                             .weight = weight,
                             .y = At(places.normed),
                             .num_deltas = adds ? options.shard.count : 1},
                            stream, adds ? KernelStart::kAfterFormer : KernelStart::kBesideFormer),
      "launch of a norm");
}

template <typename T>
NextStart LauncherOf<T>::NextOf(const DeviceStep& step) const {
  const PagedAttentionBounds bounds = {RowsOfQueryBound(step.rows_of_query_max, options.rows_max),
                                       options.context_tokens_max};
  return AreFewSplits(step.num_rows, config.num_key_value_heads, bounds) ? NextStart::kAtOnce
                                                                         : NextStart::kAfterLoads;
}

// Nothing of a whole model, nor of a shard that runs alone, where it is made.
template <typename T>
absl::Status LauncherOf<T>::Exchange(const DeviceStep& step, cudaStream_t stream) const {
  if (is_whole() || step.exchange == nullptr) return absl::OkStatus();
  return (*step.exchange)(scratch + places.partials,
                          step.num_rows * config.hidden_size * static_cast<int64_t>(sizeof(T)), stream);
}

template <typename T>
absl::Status LauncherOf<T>::Attend(int64_t layer, const DeviceStep& step, cudaStream_t stream) const {
  const LayerAddresses<T>& weights = layers[layer];
  const int64_t plane = PlaneElements(config, options);
  T* const key_pages = pages + 2 * layer * plane;
  RETURN_IF_ERROR(Norm(weights.input_norm, layer > 0, step, stream));
  RETURN_IF_ERROR(
      Product(layer_products, qkv_shape, QkvOperands(layer), step.num_rows, stream, NextOf(step)));
  const AttentionInputs<T> inputs = {.rows = step.num_rows,
                                     .num_kv_heads = config.num_key_value_heads,
                                     .group_size = config.group_size(),
                                     .head_dim = config.head_dim,
                                     .eps = eps,
                                     .qkv = At(places.qkv),
                                     .bias = weights.qkv_bias,
                                     .query_norm = weights.query_norm,
                                     .key_norm = weights.key_norm,
                                     .cosines = FloatsAt(places.cosines),
                                     .sines = FloatsAt(places.sines),
                                     .positions = step.positions,
                                     .kv_entries = step.kv_entries,
                                     .queries = At(places.queries),
                                     .key_pages = key_pages,
                                     .value_pages = key_pages + plane};
  const PagedAttention<T> attention = {
      .num_queries = step.num_queries,
      .rows = step.num_rows,
      .num_kv_heads = config.num_key_value_heads,
      .group_size = config.group_size(),
      .head_dim = config.head_dim,
      .page_tokens = options.page_tokens,
      .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(config.head_dim))),
      .row_indptr = step.row_indptr,
      .page_indptr = step.page_indptr,
      .page_indices = step.page_indices,
      .positions = step.positions,
      .queries = At(places.queries),
      .key_pages = key_pages,
      .value_pages = key_pages + plane,
      .output = At(places.attended)};
  const PagedAttentionBounds bounds = {RowsOfQueryBound(step.rows_of_query_max, options.rows_max),
                                       options.context_tokens_max};
  const NextStart next = HasAllWeights(qkv_shape) ? NextStart::kAfterLoads : NextStart::kAtOnce;
  RETURN_IF_ERROR(LaunchAttention(inputs, attention, bounds, scratch + places.attention, stream, next));
  RETURN_IF_ERROR(Product(layer_products, output_shape, OutputOperands(layer, step.num_rows), step.num_rows,
                          stream, NextOf(step)));
  return Exchange(step, stream);
}

template <typename T>
absl::Status LauncherOf<T>::FeedForward(int64_t layer, const DeviceStep& step, cudaStream_t stream) const {
  RETURN_IF_ERROR(Norm(layers[layer].post_norm, true, step, stream));
  RETURN_IF_ERROR(Gate(layer, step, stream));
  RETURN_IF_ERROR(Product(layer_products, down_shape, DownOperands(layer, step.num_rows), step.num_rows,
                          stream, NextOf(step)));
  return Exchange(step, stream);
}

template <typename T>
absl::Status LauncherOf<T>::Gate(int64_t layer, const DeviceStep& step, cudaStream_t stream) const {
  LinearOperandsOf<T> operands = GateUpOperands(layer);
  if constexpr (kStreamsProducts<T>) {
    if (layer_products.Streams(step.num_rows)) {
      operands.y = At(places.activated);
      return CudaStatus(LaunchStreamedSwiGlu(gate_up_shape, step.num_rows, operands, stream,
                                             KernelStart::kBesideFormer, NextOf(step)),
                        "launch of gate, up and SwiGLU");
    }
  }
  RETURN_IF_ERROR(Product(layer_products, gate_up_shape, operands, step.num_rows, stream));
  return CudaStatus(LaunchSwiGlu<T>({.rows = step.num_rows,
                                     .size = config.intermediate_size,
                                     .gate_up = At(places.gate_up),
                                     .y = At(places.activated)},
                                    stream, KernelStart::kBesideFormer),
                    "launch of SwiGLU");
}

// Rows are gathered as rows of an embedding are, so that norm and head see no other.
template <typename T>
absl::Status LauncherOf<T>::GatherLast(const T* from, T* to, const DeviceStep& step,
                                       cudaStream_t stream) const {
  return CudaStatus(LaunchEmbeddingGather<T>({.rows = step.num_logits_rows,
                                              .size = config.hidden_size,
                                              .num_tokens = step.num_rows,
                                              .embedding = from,
                                              .token_ids = step.logits_rows,
                                              .x = to},
                                             stream, KernelStart::kBesideFormer),
                    "launch of the rows of logits");
}

// The rows of logits, normed. A whole model gathers them from the residual; that of a shard lacks the last sums, which
// the norm of all rows adds.
template <typename T>
absl::Status LauncherOf<T>::LastNorm(const DeviceStep& step, cudaStream_t stream) const {
  if (!is_whole()) {
    RETURN_IF_ERROR(Norm(final_norm, true, step, stream));
    return GatherLast(At(places.normed), At(places.last_normed), step, stream);
  }
  RETURN_IF_ERROR(GatherLast(At(places.x), At(places.last), step, stream));
  return CudaStatus(LaunchResidualNorm<T>({.rows = step.num_logits_rows,
                                           .size = config.hidden_size,
                                           .eps = eps,
                                           .x = At(places.last),
                                           .weight = final_norm,
                                           .y = At(places.last_normed)},
                                          stream, KernelStart::kBesideFormer),
                    "launch of the last norm");
}

template <typename T>
absl::Status LauncherOf<T>::Logits(const DeviceStep& step, cudaStream_t stream) const {
  if (step.num_logits_rows == 0) return absl::OkStatus();
  RETURN_IF_ERROR(LastNorm(step, stream));
  return Product(head_products, head_shape, HeadOperands(), step.num_logits_rows, stream);
}

template <typename T>
absl::Status LauncherOf<T>::Launch(const DeviceStep& step, cudaStream_t stream) const {
  RETURN_IF_ERROR(CheckCounts(step));
  if (step.num_rows == 0) return absl::OkStatus();
  RETURN_IF_ERROR(Embed(step, stream));
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    RETURN_IF_ERROR(Attend(layer, step, stream));
    RETURN_IF_ERROR(FeedForward(layer, step, stream));
  }
  return Logits(step, stream);
}

template <typename T>
absl::StatusOr<std::unique_ptr<DeviceStepLauncher>> CreateOf(const DeviceDecoderOptions& options,
                                                             const DeviceWeights& weights,
                                                             const DeviceScratch& places, std::byte* scratch,
                                                             std::byte* pages) {
  const auto begin = std::chrono::steady_clock::now();
  auto launcher = std::make_unique<LauncherOf<T>>(options, weights, places, scratch, pages);
  RETURN_IF_ERROR(launcher->Prepare());
  if (!launcher->HasPlans()) return launcher;
  LogInfo(absl::StrFormat("chose the products of 5 layers of up to %d rows in %.2f s", options.rows_max,
                          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()));
  return launcher;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceStepLauncher>> DeviceStepLauncher::Create(
    const DeviceDecoderOptions& options, const DeviceWeights& weights, const DeviceScratch& places,
    std::byte* scratch, std::byte* pages) {
  return VisitStoredType(options.dtype, [&](auto type) {
    return CreateOf<typename decltype(type)::type>(options, weights, places, scratch, pages);
  });
}

}  // namespace warpsmith
