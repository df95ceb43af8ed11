// Causal attention of packed sequences with its backward pass, on a GPU.
//
// Shapes: T tokens, H query heads, K KV heads, h head_dim.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_TRAINING_ATTENTION_H_
#define WARPSMITH_CORE_MODEL_TRAINING_TRAINING_ATTENTION_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/model/packed_batch.h"

namespace warpsmith {

// Scores are scaled by 1 / sqrt(h).
struct AttentionShape {
  const PackedBatch* batch = nullptr;
  const int32_t* cu_seqlens = nullptr;  // the batch's, in the device's memory
  int64_t longest = 0;                  // tokens of the longest sequence
  int64_t num_query_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
};

// T is what is stored. Pointers are device memory, dense.
template <typename T>
struct AttentionHeads {
  const T* queries = nullptr;  // [T, H, h], normed and rotated
  const T* keys = nullptr;     // [T, K, h], normed and rotated
  const T* values = nullptr;   // [T, K, h]
};

// Results lie in memory of the implementation's own allocator, which lives as long as `memory`.
template <typename T>
class TrainingAttention {
 public:
  struct Result {
    std::shared_ptr<const void> memory;  // also what the backward pass wants beside `attended`
    const T* attended = nullptr;         // [T, H, h]
  };
  struct Gradients {
    std::shared_ptr<const void> memory;
    AttentionHeads<T> heads;
  };

  virtual ~TrainingAttention() = default;

  // Both launch on `stream` and do not synchronise. RESOURCE_EXHAUSTED where memory lacks, INTERNAL where a library
  // fails.
  virtual absl::StatusOr<Result> Forward(const AttentionShape& shape, const AttentionHeads<T>& heads,
                                         cudaStream_t stream) = 0;
  // `heads` hold what they did in the forward pass.
  virtual absl::StatusOr<Gradients> Backward(const AttentionShape& shape, const AttentionHeads<T>& heads,
                                             const Result& forward, const T* attended_gradient,
                                             cudaStream_t stream) = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_TRAINING_ATTENTION_H_
