// Gradients of weight matrices: dW = dY^T X over all tokens.
#ifndef WARPSMITH_CORE_MODEL_TRAINING_WEIGHT_GRADIENT_H_
#define WARPSMITH_CORE_MODEL_TRAINING_WEIGHT_GRADIENT_H_

#include <cstdint>
#include <vector>

#include "core/kernels/thread_pool.h"

namespace warpsmith {

// weight_grad [rows, columns] += y_grad^T x, with y_grad [tokens, rows] and x [tokens, columns].
template <typename T>
struct WeightGradient {
  const T* y_grad;
  int64_t rows;
  const T* x;
  int64_t columns;
  T* weight_grad;
};

// All of `gradients` over the same tokens, split among the threads by rows. An element is summed over tokens
// in order.
template <typename T>
void AddWeightGradients(const std::vector<WeightGradient<T>>& gradients, int64_t num_tokens,
                        ThreadPool* pool);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_TRAINING_WEIGHT_GRADIENT_H_
