// Log-probabilities of given tokens from hidden states, on a CPU, without keeping logits.
//
// Shapes: N rows, D hidden_size, V token ids. The head may have more rows than there are ids (Qwen3
// pads it): the softmax is over the first V rows alone, for padding names no token, is never
// sampled, and would leave the probabilities of what can be sampled with a sum below 1.
// With z = W x / temperature:
//   log_prob = z[target] - log sum exp z;   dz = (1[target] - softmax(z)) dlog_prob / temperature;   dx = dz
//   W;   dW = dz^T x
#ifndef WARPSMITH_CORE_MODEL_TRAINING_TOKEN_SCORING_H_
#define WARPSMITH_CORE_MODEL_TRAINING_TOKEN_SCORING_H_

#include <cstdint>
#include <vector>

#include "core/kernels/thread_pool.h"
#include "core/model/layer_weights.h"

namespace warpsmith {

// The rows to score and the weights to score them with.
template <typename T>
struct ScoringInput {
  const T* head;  // [V, D]; rows behind them are not read
  int64_t num_token_ids;
  int64_t hidden_size;
  const T* hidden;               // [N, D]
  std::vector<int64_t> rows;     // rows of `hidden` with a target
  std::vector<int64_t> targets;  // one for each of `rows`
  T temperature;
};

// Holds scratch memory. One thread at a time.
template <typename T>
class TokenScoring {
 public:
  explicit TokenScoring(ThreadPool* pool) : pool_(pool), scratch_(NumThreads(pool)) {}

  // Writes element rows[i] of `log_probs` and `entropy` [N], and element i of `log_sum_exp`.
  void Forward(const ScoringInput<T>& input, T* log_probs, T* entropy, T* log_sum_exp);

  // `log_prob_grad` [N]. Adds to rows `rows` of hidden_grad [N, D] and to head_grad [V, D].
  void Backward(const ScoringInput<T>& input, const T* log_sum_exp, const T* log_prob_grad, T* hidden_grad,
                T* head_grad);

 private:
  // Logits [count, V] of rows [first, first + count) of `input.rows`; `hidden` [count, D] receives their
  // hidden states.
  void Logits(const ScoringInput<T>& input, int64_t first, int64_t count, T* hidden, T* logits) const;
  void BackwardBlock(const ScoringInput<T>& input, int64_t first, int64_t count, const T* log_sum_exp,
                     const T* log_prob_grad, T* hidden, T* logits, T* block_grad, T* hidden_grad) const;

  ThreadPool* pool_;
  PackedMatrix<T> head_;
  std::vector<T> chunk_;
  std::vector<std::vector<T>> scratch_;  // by worker
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_TOKEN_SCORING_H_
