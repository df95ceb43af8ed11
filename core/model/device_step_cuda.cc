#include "core/model/device_step_cuda.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/kernels/attention_inputs_cuda.h"
#include "core/kernels/embedding_gather_cuda.h"
#include "core/kernels/paged_attention_cuda.h"
#include "core/kernels/residual_norm_cuda.h"
#include "core/kernels/streamed_linear_cuda.h"
#include "core/kernels/swiglu_cuda.h"
#include "core/model/cuda_status.h"
#include "core/model/device_memory.h"

namespace warpsmith {
namespace {

// How a kind of product runs: by LaunchStreamedLinear up to streamed_rows_max rows, by plans beyond. The
// batch-invariant mode has no plans.
struct Products {
  std::unique_ptr<LinearPlans> plans;
  int64_t streamed_rows_max = INT64_MAX;

  bool Streams(int64_t rows) const { return rows <= streamed_rows_max; }
};

// Twice what the device caches.
absl::StatusOr<DeviceMemory> EvictingMemory(int device, int64_t& bytes) {
  int cache = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device), "size of the cache"));
  bytes = 2 * static_cast<int64_t>(cache);
  return DeviceMemory::Zeros(std::max<int64_t>(bytes, 1));
}

}  // namespace

int64_t AttentionWorkspaceBytes(const ModelConfig& config, const DeviceDecoderOptions& options) {
  size_t most = 0;
  for (int64_t rows = 1; rows <= options.rows_max; ++rows) {
    const int64_t largest = RowsOfQueryBound(rows, options.rows_max);
    for (int64_t each = rows <= options.logits_rows_max ? 1 : 2;; each = std::min(2 * each, largest)) {
      most =
          std::max(most, PagedAttentionWorkspaceBytes(rows, config.num_key_value_heads, config.group_size(),
                                                      config.head_dim, {each, options.context_tokens_max}));
      if (each >= largest) break;
    }
  }
  return static_cast<int64_t>(most);
}

struct DeviceStepLauncher::State {
  State(const DeviceDecoderOptions& options, const DeviceWeights& weights, const DeviceScratch& places,
        std::byte* scratch, std::byte* pages);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (handle != nullptr) cublasLtDestroy(handle);
  }

  __nv_bfloat16* At(int64_t place) const { return reinterpret_cast<__nv_bfloat16*>(scratch + place); }
  float* FloatsAt(int64_t place) const { return reinterpret_cast<float*>(scratch + place); }

  absl::Status Prepare();
  absl::Status CheckCounts(const DeviceStep& step) const;
  absl::Status Embed(const DeviceStep& step, cudaStream_t stream) const;
  absl::Status Norm(const __nv_bfloat16* weight, bool follows_product, const DeviceStep& step,
                    cudaStream_t stream) const;
  absl::Status Exchange(const DeviceStep& step, cudaStream_t stream) const;
  bool batch_invariant() const { return options.row_buckets.size() == 1; }
  bool is_whole() const { return options.shard.is_whole(); }
  absl::Status Product(const Products& products, const LinearShape& shape, const LinearOperands& operands,
                       int64_t rows, cudaStream_t stream) const;
  absl::Status Attend(int64_t layer, const DeviceStep& step, cudaStream_t stream) const;
  absl::Status Gate(int64_t layer, const DeviceStep& step, cudaStream_t stream) const;
  absl::Status FeedForward(int64_t layer, const DeviceStep& step, cudaStream_t stream) const;
  absl::Status GatherLast(const __nv_bfloat16* from, __nv_bfloat16* to, const DeviceStep& step,
                          cudaStream_t stream) const;
  absl::Status LastNorm(const DeviceStep& step, cudaStream_t stream) const;
  absl::Status Logits(const DeviceStep& step, cudaStream_t stream) const;

  // What each product multiplies, of `layer`.
  LinearOperands QkvOperands(int64_t layer) const;
  LinearOperands OutputOperands(int64_t layer, int64_t rows) const;
  LinearOperands GateUpOperands(int64_t layer) const;
  LinearOperands DownOperands(int64_t layer, int64_t rows) const;
  LinearOperands SummedOperands(int64_t x, const __nv_bfloat16* weight, int64_t rows) const;
  LinearOperands HeadOperands() const;

  const ModelConfig config;
  const DeviceDecoderOptions options;
  const DeviceScratch places;
  std::byte* const scratch;
  __nv_bfloat16* const pages;
  const float eps;

  const __nv_bfloat16* embedding = nullptr;
  const __nv_bfloat16* final_norm = nullptr;
  const __nv_bfloat16* head = nullptr;
  std::vector<LayerAddresses> layers;

  LinearShape qkv_shape, output_shape, gate_up_shape, down_shape, head_shape;
  cublasLtHandle_t handle = nullptr;
  Products layer_products, head_products;
};

DeviceStepLauncher::State::State(const DeviceDecoderOptions& options, const DeviceWeights& weights,
                                 const DeviceScratch& places, std::byte* scratch, std::byte* pages)
    : config(weights.layout().config()),
      options(options),
      places(places),
      scratch(scratch),
      pages(reinterpret_cast<__nv_bfloat16*>(pages)),
      eps(static_cast<float>(config.rms_norm_eps)) {
  const ParameterLayout& layout = weights.layout();
  embedding = weights.Find(layout.embedding_buffer(), "embedding");
  final_norm = weights.Find(layout.final_buffer(), "norm");
  head = config.tie_word_embeddings ? embedding : weights.Find(layout.final_buffer(), "head");
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer)
    layers.push_back(weights.FindLayer(layer));
  qkv_shape = {.columns = config.qkv_size(), .depth = config.hidden_size};
  output_shape = {.columns = config.hidden_size, .depth = config.query_size(), .has_residual = is_whole()};
  gate_up_shape = {.columns = 2 * config.intermediate_size, .depth = config.hidden_size};
  down_shape = {.columns = config.hidden_size, .depth = config.intermediate_size, .has_residual = is_whole()};
  head_shape = {.columns = LogitsStride(config, options.num_token_ids),
                .depth = config.hidden_size,
                .output = LinearOutput::kFloat32};
}

LinearOperands DeviceStepLauncher::State::QkvOperands(int64_t layer) const {
  return {.x = At(places.normed), .weight = layers[layer].qkv, .y = At(places.qkv)};
}

// Into the residual; of a shard into its row of partial sums.
LinearOperands DeviceStepLauncher::State::SummedOperands(int64_t x, const __nv_bfloat16* weight,
                                                         int64_t rows) const {
  if (is_whole()) return {.x = At(x), .weight = weight, .residual = At(places.x), .y = At(places.x)};
  return {.x = At(x),
          .weight = weight,
          .y = At(places.partials) + options.shard.index * rows * config.hidden_size};
}

LinearOperands DeviceStepLauncher::State::OutputOperands(int64_t layer, int64_t rows) const {
  return SummedOperands(places.attended, layers[layer].output, rows);
}

LinearOperands DeviceStepLauncher::State::GateUpOperands(int64_t layer) const {
  return {.x = At(places.normed), .weight = layers[layer].gate_up, .y = At(places.gate_up)};
}

LinearOperands DeviceStepLauncher::State::DownOperands(int64_t layer, int64_t rows) const {
  return SummedOperands(places.activated, layers[layer].down, rows);
}

LinearOperands DeviceStepLauncher::State::HeadOperands() const {
  return {.x = At(places.last_normed), .weight = head, .y = At(places.logits)};
}

// The head has buckets of its own: with those of the rows it would want logits for all of them.
absl::Status DeviceStepLauncher::State::Prepare() {
  if (batch_invariant()) return absl::OkStatus();
  RETURN_IF_ERROR(CublasStatus(cublasLtCreate(&handle), "cublasLtCreate"));
  const CublasWorkspace workspace = {scratch + places.products, static_cast<size_t>(kProductWorkspaceBytes)};
  const auto products_of = [&](const std::vector<int64_t>& buckets) {
    const int64_t streamed = StreamedRowsMax(buckets);
    return Products{std::make_unique<LinearPlans>(handle, workspace, BucketsBeyond(buckets, streamed),
                                                  DepthSplit::kAllowed, kStepSearch),
                    streamed};
  };
  layer_products = products_of(options.row_buckets);
  head_products = products_of(LogitsRowBuckets(options));

  int64_t evicted_bytes = 0;
  ASSIGN_OR_RETURN(const DeviceMemory evicted, EvictingMemory(options.device, evicted_bytes));
  const CublasWorkspace cache = {evicted.get(), static_cast<size_t>(evicted_bytes)};
  const auto prepare = [&](LinearPlans& plans, const LinearShape& shape, const LinearOperands& operands) {
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

absl::StatusOr<std::unique_ptr<DeviceStepLauncher>> DeviceStepLauncher::Create(
    const DeviceDecoderOptions& options, const DeviceWeights& weights, const DeviceScratch& places,
    std::byte* scratch, std::byte* pages) {
  const auto begin = std::chrono::steady_clock::now();
  auto state = std::make_unique<State>(options, weights, places, scratch, pages);
  RETURN_IF_ERROR(state->Prepare());
  if (state->batch_invariant())
    return std::unique_ptr<DeviceStepLauncher>(new DeviceStepLauncher(std::move(state)));
  LogInfo(absl::StrFormat("chose the products of 5 layers of up to %d rows in %.2f s", options.rows_max,
                          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()));
  return std::unique_ptr<DeviceStepLauncher>(new DeviceStepLauncher(std::move(state)));
}

DeviceStepLauncher::DeviceStepLauncher(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceStepLauncher::~DeviceStepLauncher() = default;

const float* DeviceStepLauncher::logits() const { return state_->FloatsAt(state_->places.logits); }

absl::Status DeviceStepLauncher::State::CheckCounts(const DeviceStep& step) const {
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

absl::Status DeviceStepLauncher::State::Embed(const DeviceStep& step, cudaStream_t stream) const {
  return CudaStatus(LaunchEmbeddingGather({.rows = step.num_rows,
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
absl::Status DeviceStepLauncher::State::Norm(const __nv_bfloat16* weight, bool follows_product,
                                             const DeviceStep& step, cudaStream_t stream) const {
  const bool adds = follows_product && !is_whole();
  return CudaStatus(LaunchResidualNorm({.rows = step.num_rows,
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

// Nothing of a whole model, nor of a shard that runs alone, where it is made.
absl::Status DeviceStepLauncher::State::Exchange(const DeviceStep& step, cudaStream_t stream) const {
  if (is_whole() || step.exchange == nullptr) return absl::OkStatus();
  return (*step.exchange)(At(places.partials), step.num_rows * config.hidden_size, stream);
}

absl::Status DeviceStepLauncher::State::Product(const Products& products, const LinearShape& shape,
                                                const LinearOperands& operands, int64_t rows,
                                                cudaStream_t stream) const {
  const auto what = [&] {
    return absl::StrCat("product of ", rows, " rows, ", shape.columns, " columns and depth ", shape.depth);
  };
  if (products.Streams(rows)) {
    const cudaError_t error = LaunchStreamedLinear(shape, rows, operands, stream, KernelStart::kBesideFormer);
    return error == cudaSuccess ? absl::OkStatus() : CudaStatus(error, what());
  }
  const cublasStatus_t status = products.plans->Launch(shape, rows, operands, stream);
  return status == CUBLAS_STATUS_SUCCESS ? absl::OkStatus() : CublasStatus(status, what());
}

absl::Status DeviceStepLauncher::State::Attend(int64_t layer, const DeviceStep& step,
                                               cudaStream_t stream) const {
  const LayerAddresses& weights = layers[layer];
  const int64_t plane = PlaneElements(config, options);
  __nv_bfloat16* const key_pages = pages + 2 * layer * plane;
  RETURN_IF_ERROR(Norm(weights.input_norm, layer > 0, step, stream));
  RETURN_IF_ERROR(Product(layer_products, qkv_shape, QkvOperands(layer), step.num_rows, stream));
  RETURN_IF_ERROR(CudaStatus(LaunchAttentionInputs({.rows = step.num_rows,
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
                                                    .value_pages = key_pages + plane},
                                                   stream, KernelStart::kBesideFormer),
                             "launch of attention's inputs"));
  const PagedAttentionBounds bounds = {RowsOfQueryBound(step.rows_of_query_max, options.rows_max),
                                       options.context_tokens_max};
  RETURN_IF_ERROR(CudaStatus(
      LaunchPagedAttention({.num_queries = step.num_queries,
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
                            .output = At(places.attended)},
                           bounds, scratch + places.attention, stream, KernelStart::kBesideFormer),
      "launch of attention"));
  RETURN_IF_ERROR(
      Product(layer_products, output_shape, OutputOperands(layer, step.num_rows), step.num_rows, stream));
  return Exchange(step, stream);
}

absl::Status DeviceStepLauncher::State::FeedForward(int64_t layer, const DeviceStep& step,
                                                    cudaStream_t stream) const {
  RETURN_IF_ERROR(Norm(layers[layer].post_norm, true, step, stream));
  RETURN_IF_ERROR(Gate(layer, step, stream));
  RETURN_IF_ERROR(
      Product(layer_products, down_shape, DownOperands(layer, step.num_rows), step.num_rows, stream));
  return Exchange(step, stream);
}

absl::Status DeviceStepLauncher::State::Gate(int64_t layer, const DeviceStep& step,
                                             cudaStream_t stream) const {
  LinearOperands operands = GateUpOperands(layer);
  if (layer_products.Streams(step.num_rows)) {
    operands.y = At(places.activated);
    return CudaStatus(
        LaunchStreamedSwiGlu(gate_up_shape, step.num_rows, operands, stream, KernelStart::kBesideFormer),
        "launch of gate, up and SwiGLU");
  }
  RETURN_IF_ERROR(Product(layer_products, gate_up_shape, operands, step.num_rows, stream));
  return CudaStatus(LaunchSwiGlu({.rows = step.num_rows,
                                  .size = config.intermediate_size,
                                  .gate_up = At(places.gate_up),
                                  .y = At(places.activated)},
                                 stream, KernelStart::kBesideFormer),
                    "launch of SwiGLU");
}

// Rows are gathered as rows of an embedding are, so that norm and head see no other.
absl::Status DeviceStepLauncher::State::GatherLast(const __nv_bfloat16* from, __nv_bfloat16* to,
                                                   const DeviceStep& step, cudaStream_t stream) const {
  return CudaStatus(LaunchEmbeddingGather({.rows = step.num_logits_rows,
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
absl::Status DeviceStepLauncher::State::LastNorm(const DeviceStep& step, cudaStream_t stream) const {
  if (!is_whole()) {
    RETURN_IF_ERROR(Norm(final_norm, true, step, stream));
    return GatherLast(At(places.normed), At(places.last_normed), step, stream);
  }
  RETURN_IF_ERROR(GatherLast(At(places.x), At(places.last), step, stream));
  return CudaStatus(LaunchResidualNorm({.rows = step.num_logits_rows,
                                        .size = config.hidden_size,
                                        .eps = eps,
                                        .x = At(places.last),
                                        .weight = final_norm,
                                        .y = At(places.last_normed)},
                                       stream, KernelStart::kBesideFormer),
                    "launch of the last norm");
}

absl::Status DeviceStepLauncher::State::Logits(const DeviceStep& step, cudaStream_t stream) const {
  if (step.num_logits_rows == 0) return absl::OkStatus();
  RETURN_IF_ERROR(LastNorm(step, stream));
  return Product(head_products, head_shape, HeadOperands(), step.num_logits_rows, stream);
}

absl::Status DeviceStepLauncher::Launch(const DeviceStep& step, cudaStream_t stream) const {
  RETURN_IF_ERROR(state_->CheckCounts(step));
  if (step.num_rows == 0) return absl::OkStatus();
  RETURN_IF_ERROR(state_->Embed(step, stream));
  for (int64_t layer = 0; layer < state_->config.num_hidden_layers; ++layer) {
    RETURN_IF_ERROR(state_->Attend(layer, step, stream));
    RETURN_IF_ERROR(state_->FeedForward(layer, step, stream));
  }
  return state_->Logits(step, stream);
}

}  // namespace warpsmith
