#include "core/kernels/log_softmax.h"

#include "core/kernels/kernel_set.h"

namespace warpsmith {

template <typename T>
TokenScore<T> ScoreToken(const T* logits, int64_t vocab_size, int64_t target, T temperature) {
  return Kernels<T>().score_row(logits, vocab_size, target, T(1) / temperature);
}

template TokenScore<float> ScoreToken(const float*, int64_t, int64_t, float);
template TokenScore<double> ScoreToken(const double*, int64_t, int64_t, double);

}  // namespace warpsmith
