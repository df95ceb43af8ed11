#include "core/model/training/cuda_head.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/kernels/embedding_gather_cuda.h"
#include "core/kernels/training/norm_gradient_cuda.h"
#include "core/kernels/training/row_scores_cuda.h"
#include "core/model/cuda_status.h"
#include "core/model/event_arrival_cuda.h"
#include "core/model/training/cuda_calls.h"

namespace warpsmith {
namespace {

// A pass over a micro-batch takes seconds at most.
constexpr absl::Duration kPassTimeout = absl::Minutes(10);

}  // namespace

template <typename T>
void CudaHead<T>::Place(const CudaBatch& batch, bool has_backward, bool keeps_logits, DeviceArena& arena) {
  batch_ = &batch;
  keeps_logits_ = keeps_logits;
  computed_.clear();
  const int64_t rows = std::min(rows_max_, num_scored());
  states_ = arena.Take<T>(num_scored() * hidden_size_);
  hidden_ = arena.Take<T>((num_scored() + 1) * hidden_size_);
  logits_ = arena.Take<float>((keeps_logits ? num_scored() : rows) * vocab_size_);
  log_probs_ = arena.Take<float>(4 * num_scored());
  if (!has_backward) return;
  hidden_gradient_ = arena.Take<T>(num_scored() * hidden_size_);
  logit_gradients_ = arena.Take<T>(rows * vocab_size_);
}

template <typename T>
RowScoring CudaHead<T>::ScoringOf(int64_t first, int64_t rows) const {
  return {rows,
          num_token_ids_,
          vocab_size_,
          static_cast<float>(1.0 / batch_->temperature()),
          LogitsAt(first),
          batch_->indices().targets + first,
          log_probs_ + first,
          log_probs_ + num_scored() + first,
          log_probs_ + 2 * num_scored() + first};
}

template <typename T>
absl::Status CudaHead<T>::Logits(const CudaHeadWeights<T>& weights, int64_t first, int64_t rows) {
  if (std::find(computed_.begin(), computed_.end(), first) != computed_.end()) return absl::OkStatus();
  MatrixProduct product = LinearForward(rows, vocab_size_, hidden_size_);
  product.in_float32 = true;
  RETURN_IF_ERROR(Multiply(products_, product, hidden_ + first * hidden_size_, weights.head, LogitsAt(first),
                           "logits", stream_));
  if (!keeps_logits_) computed_.clear();
  computed_.push_back(first);
  return absl::OkStatus();
}

template <typename T>
absl::Status CudaHead<T>::Score(const CudaHeadWeights<T>& weights, const T* state,
                                std::vector<float>* log_probs, std::vector<float>* entropies) {
  const int64_t scored = num_scored();
  log_probs->resize(scored);
  entropies->resize(scored);
  if (scored == 0) return absl::OkStatus();
  RETURN_IF_ERROR(CudaStatus(LaunchEmbeddingGather<T>({scored, hidden_size_, batch_->num_tokens(), state,
                                                       batch_->indices().rows, nullptr, nullptr, states_},
                                                      stream_),
                             "gathering scored rows"));
  RETURN_IF_ERROR(Normalise(states_, weights.norm, scored, hidden_size_, eps_, hidden_, stream_));
  for (int64_t first = 0; first < scored; first += rows_max_) {
    const int64_t rows = std::min(rows_max_, scored - first);
    RETURN_IF_ERROR(Logits(weights, first, rows));
    RETURN_IF_ERROR(CudaStatus(LaunchRowScoring(ScoringOf(first, rows), stream_), "scoring"));
  }
  RETURN_IF_ERROR(AwaitStream(stream_, absl::Now() + kPassTimeout));  // copies have no deadline
  const size_t bytes = scored * sizeof(float);
  RETURN_IF_ERROR(
      CudaStatus(cudaMemcpyAsync(log_probs->data(), log_probs_, bytes, cudaMemcpyDeviceToHost, stream_),
                 "copying log-probabilities"));
  RETURN_IF_ERROR(CudaStatus(
      cudaMemcpyAsync(entropies->data(), log_probs_ + scored, bytes, cudaMemcpyDeviceToHost, stream_),
      "copying entropies"));
  return AwaitStream(stream_, absl::Now() + kPassTimeout);
}

template <typename T>
absl::Status CudaHead<T>::BackwardRows(const CudaHeadWeights<T>& weights, int64_t first, int64_t rows) {
  const int64_t d = hidden_size_;
  RETURN_IF_ERROR(Logits(weights, first, rows));
  RETURN_IF_ERROR(
      CudaStatus(LaunchRowScoringGradient<T>(
                     {ScoringOf(first, rows), log_prob_gradients() + first, logit_gradients_}, stream_),
                 "the gradient of logits"));
  RETURN_IF_ERROR(Multiply(products_, LinearInputGradient(rows, vocab_size_, d), logit_gradients_,
                           weights.head, hidden_gradient_ + first * d, "the gradient of hidden states",
                           stream_));
  return Multiply(products_, LinearWeightGradient(rows, vocab_size_, d), logit_gradients_,
                  hidden_ + first * d, weights.head_gradient, "the gradient of the head", stream_);
}

template <typename T>
absl::Status CudaHead<T>::Backward(const CudaHeadWeights<T>& weights,
                                   const std::vector<float>& log_prob_gradients, float* parts, T* gradient) {
  const int64_t scored = num_scored(), d = hidden_size_;
  RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(this->log_prob_gradients(), log_prob_gradients.data(),
                                             scored * sizeof(float), cudaMemcpyHostToDevice, stream_),
                             "copying gradients of log-probabilities"));
  // The last rows come first, for their logits are still there.
  for (int64_t first = (scored - 1) / rows_max_ * rows_max_; scored > 0 && first >= 0; first -= rows_max_) {
    RETURN_IF_ERROR(BackwardRows(weights, first, std::min(rows_max_, scored - first)));
  }
  RETURN_IF_ERROR(
      CudaStatus(cudaMemsetAsync(hidden_, 0, (scored + 1) * d * sizeof(T), stream_), "cudaMemset"));
  RETURN_IF_ERROR(CudaStatus(
      LaunchNormGradient<T>({scored, d, static_cast<float>(eps_), states_, weights.norm, hidden_gradient_,
                             hidden_, /*y=*/nullptr, parts, weights.norm_gradient},
                            stream_),
      "the gradient of the final norm"));
  return CudaStatus(LaunchEmbeddingGather<T>({batch_->num_tokens(), d, scored + 1, hidden_,
                                              batch_->indices().places, nullptr, nullptr, gradient},
                                             stream_),
                    "spreading scored rows");
}

template class CudaHead<__nv_bfloat16>;
template class CudaHead<float>;

}  // namespace warpsmith
