#include "core/model/training/training_cost.h"

#include <algorithm>

#include "core/kernels/training/norm_gradient.h"
#include "core/model/parameter_layout.h"

namespace warpsmith {
namespace {

constexpr int64_t kStored = 2, kFloat = 4;      // bytes of bfloat16 and float32
constexpr int64_t kBytesAWeight = 18;           // see CudaTrainer
constexpr int64_t kLibraryBytes = 800'000'000;  // seen on an H200: 0.55 GB of context, workspaces
constexpr int64_t kHeadRowsMax = 2048;          // CudaLayersOptions
constexpr int64_t kIndicesAToken = 9;           // of 4 bytes; CudaBatch
constexpr int64_t kMultiprocessors = 132;       // of an H100 or H200

// LibTorch's allocator, which attention uses, holds more than is used: 12 % of all on an H200 at 8,192 tokens of 1.7B.
constexpr double kHeldAndUsed = 1.12;

int64_t NumElements(const ParameterLayout& layout) {
  int64_t sum = 0;
  for (const ParameterBuffer& buffer : layout.buffers()) sum += buffer.size;
  return sum;
}

// The elements of a layer's matrices.
int64_t LayerMatrices(const ModelConfig& c) {
  return c.hidden_size * (c.qkv_size() + c.query_size() + 3 * c.intermediate_size);
}

// Returns the bytes of the arrays that wait for the backward pass, and of those that layers share (CudaLayers::Place).
int64_t LayerBytes(const ModelConfig& c, Recomputation recomputation, int64_t n) {
  const int64_t layers = c.num_hidden_layers, d = c.hidden_size, q = c.query_size();
  const int64_t keys = c.num_key_value_heads * c.head_dim;
  const int64_t inputs = c.qkv_size() + d, mlp = 2 * c.intermediate_size;
  const int64_t attended = q * kStored + c.num_attention_heads * kFloat;
  const int64_t states = (layers + 1) * d;
  const int64_t kept =
      (KeepsInputs(recomputation) ? layers : 1) * inputs + (KeepsMlp(recomputation) ? layers : 1) * mlp;
  const int64_t shared = 2 * d + 2 * q + 2 * keys + c.intermediate_size;
  return n * ((states + kept + shared) * kStored + (KeepsAttention(recomputation) ? layers : 1) * attended) +
         NumGradientParts(n) * std::max(d, 2 * c.head_dim) * kFloat;
}

// FlashAttention 2 backward: gradients, keys' and values' of all query heads, and partial sums of the queries' in
// float32, one for each part of a sequence that multiprocessors share where it is deterministic.
int64_t AttentionBytes(const ModelConfig& c, const TrainingMemoryOptions& options) {
  const int64_t n = options.tokens_max, sequence = options.sequence_tokens_max;
  const int64_t num_sequences = std::max<int64_t>(1, n / std::max<int64_t>(1, sequence));
  const int64_t heads = num_sequences * c.num_attention_heads;
  const int64_t splits = options.deterministic ? (kMultiprocessors + heads - 1) / heads : 1;
  const int64_t keys = c.num_key_value_heads * c.head_dim;
  return n * ((3 * c.query_size() + 2 * keys) * kStored + c.num_attention_heads * kFloat +
              splits * c.query_size() * kFloat);
}

// The head's logits and their gradients (CudaHead::Place).
int64_t HeadBytes(const ModelConfig& c, Recomputation recomputation, int64_t n) {
  const int64_t rows = std::min(kHeadRowsMax, n);
  return ((KeepsMlp(recomputation) ? n : rows) * kFloat + rows * kStored) * c.vocab_size +
         n * (3 * c.hidden_size * kStored + 4 * kFloat);
}

}  // namespace

double TrainingFlops(const ModelConfig& config, int64_t num_tokens, int64_t num_scored) {
  const auto weights = static_cast<double>(config.num_hidden_layers * LayerMatrices(config));
  const auto head = static_cast<double>(config.vocab_size * config.hidden_size);
  const auto attention = static_cast<double>(config.num_hidden_layers * config.query_size());
  const auto t = static_cast<double>(num_tokens);
  return 6 * (weights * t + head * static_cast<double>(num_scored) + attention * t * t);
}

TrainingMemory PlanTrainingMemory(const ModelConfig& config, const TrainingMemoryOptions& options) {
  const int64_t elements = NumElements(ParameterLayout(config)), n = options.tokens_max;
  const int64_t arrays = LayerBytes(config, options.recomputation, n) + AttentionBytes(config, options) +
                         HeadBytes(config, options.recomputation, n) + kIndicesAToken * n * kFloat;
  return {.state = elements * (kBytesAWeight + (options.has_reference ? kStored : 0)),
          .activations = static_cast<int64_t>(kHeldAndUsed * static_cast<double>(arrays)),
          .libraries = kLibraryBytes};
}

}  // namespace warpsmith
