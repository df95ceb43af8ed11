// The final norm and the head of a training pass on a GPU.
//
// Shapes: T tokens of a batch, N of them with a target, D hidden_size, V vocab_size.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_CUDA_HEAD_H_
#define WARPSMITH_CORE_MODEL_TRAINING_CUDA_HEAD_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/kernels/training/matrix_product_cuda.h"
#include "core/kernels/training/row_scores.h"
#include "core/model/model_config.h"
#include "core/model/training/cuda_batch.h"
#include "core/model/training/device_arena.h"

namespace warpsmith {

// Device memory. Gradients are added to.
template <typename T>
struct CudaHeadWeights {
  const T* norm = nullptr;         // [D]
  const T* head = nullptr;         // [V, D]
  float* norm_gradient = nullptr;  // [D]
  float* head_gradient = nullptr;  // [V, D]
};

// T is what is stored. Rows are worked on `rows_max` at a time, so that sums have the same bits whether their logits
// wait for the backward pass or are computed again there.
template <typename T>
class CudaHead {
 public:
  // `num_token_ids`: see CpuLayers.
  CudaHead(const ModelConfig& config, int64_t num_token_ids, int64_t rows_max, MatrixProducts<T>& products,
           cudaStream_t stream)
      : hidden_size_(config.hidden_size),
        vocab_size_(config.vocab_size),
        eps_(config.rms_norm_eps),
        num_token_ids_(num_token_ids),
        rows_max_(rows_max),
        products_(products),
        stream_(stream) {}

  // Takes room for a pass over `batch`, which outlives it. `has_backward`: Backward follows Score; `keeps_logits`: the
  // logits wait for it.
  void Place(const CudaBatch& batch, bool has_backward, bool keeps_logits, DeviceArena& arena);

  // Writes log-probabilities and entropies [N] from the state [T, D] behind the last layer. Waits for them.
  absl::Status Score(const CudaHeadWeights<T>& weights, const T* state, std::vector<float>* log_probs,
                     std::vector<float>* entropies);

  // Overwrites `gradient` [T, D], of the state, from those of the log-probabilities [N]. `parts`: scratch of
  // NumGradientParts(T) D.
  absl::Status Backward(const CudaHeadWeights<T>& weights, const std::vector<float>& log_prob_gradients,
                        float* parts, T* gradient);

 private:
  absl::Status Logits(const CudaHeadWeights<T>& weights, int64_t first, int64_t rows);
  float* LogitsAt(int64_t first) const { return logits_ + (keeps_logits_ ? first * vocab_size_ : 0); }
  absl::Status BackwardRows(const CudaHeadWeights<T>& weights, int64_t first, int64_t rows);
  RowScoring ScoringOf(int64_t first, int64_t rows) const;
  int64_t num_scored() const { return batch_->num_scored(); }
  float* log_prob_gradients() const { return log_probs_ + 3 * num_scored(); }

  const int64_t hidden_size_, vocab_size_;
  const double eps_;
  const int64_t num_token_ids_, rows_max_;
  MatrixProducts<T>& products_;
  const cudaStream_t stream_;

  // State of the pass under way.
  const CudaBatch* batch_ = nullptr;
  bool keeps_logits_ = false;
  std::vector<int64_t> computed_;  // first rows of the logits that are there
  T* states_ = nullptr;            // [N, D] behind the last layer
  T* hidden_ = nullptr;  // [N + 1, D] behind the norm; backward: the gradient of `states_`, the last row 0
  T* hidden_gradient_ = nullptr;  // [N, D]
  float* logits_ = nullptr;       // [rows, V], or [N, V] where they wait
  T* logit_gradients_ = nullptr;  // [rows, V]
  float* log_probs_ = nullptr;    // [N], and as many entropies, log_sum_exps and gradients behind them
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_CUDA_HEAD_H_
