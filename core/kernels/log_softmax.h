// Log-probability of a token, one function for worker and trainer, so that their bits agree.
#ifndef WARPSMITH_CORE_KERNELS_LOG_SOFTMAX_H_
#define WARPSMITH_CORE_KERNELS_LOG_SOFTMAX_H_

#include <cstdint>

namespace warpsmith {

template <typename T>
struct TokenScore {
  T log_prob;     // z[target] - log sum exp z, with z = logits / temperature
  T entropy;      // -sum p log p, nats
  T log_sum_exp;  // of z
};

// Scores `target` in a row of `vocab_size` logits. Fixed order of reduction; the same bits on every vector
// width. T is float or double; temperature > 0.
template <typename T>
TokenScore<T> ScoreToken(const T* logits, int64_t vocab_size, int64_t target, T temperature);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_LOG_SOFTMAX_H_
