// Copies what kernels read of a batch into a GPU's memory.
//
// Shapes: T tokens of a batch, N of them with a target.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_CUDA_BATCH_H_
#define WARPSMITH_CORE_MODEL_TRAINING_CUDA_BATCH_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/model/training/device_arena.h"
#include "core/model/training/layer_compute.h"

namespace warpsmith {

class CudaBatch {
 public:
  // Device memory, int32.
  struct Indices {
    int32_t *tokens, *entries, *positions;                 // [T]; entries: 0, 1, ...
    int32_t* cu_seqlens;                                   // of the sequences
    int32_t *rows, *targets;                               // [N]
    int32_t* places;                                       // [T]: among the N, or N
    int32_t *sorted_tokens, *sorted_indptr, *sorted_rows;  // RowsByToken, where they are wanted
  };

  // Takes `batch` in, which outlives this. `sorts`: an embedding's gradient follows. The ids are checked against what
  // the model has.
  void Begin(const ScoredBatch& batch, bool sorts, int64_t vocab_size, int64_t num_token_ids);
  // Takes room for the indices.
  void Place(DeviceArena& arena);
  // Copies all of them at once.
  absl::Status Upload(cudaStream_t stream);

  const PackedBatch& packed() const { return batch_->packed; }
  double temperature() const { return batch_->temperature; }
  int64_t num_tokens() const { return packed().num_tokens(); }
  int64_t num_scored() const { return static_cast<int64_t>(scored_rows_.size()); }
  // [N], ascending.
  const std::vector<int32_t>& scored_rows() const { return scored_rows_; }
  int64_t num_sorted_tokens() const { return num_sorted_tokens_; }
  // Tokens of the longest sequence; the largest position.
  int64_t longest() const;
  int64_t position_max() const;
  const Indices& indices() const { return indices_; }

 private:
  const ScoredBatch* batch_ = nullptr;
  bool sorts_ = false;
  std::vector<int32_t> scored_rows_;
  int64_t num_sorted_tokens_ = 0;
  Indices indices_{};
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_CUDA_BATCH_H_
