// The AdamW update, and the norm that clipping needs, over flat arrays.
#ifndef WARPSMITH_CORE_KERNELS_ADAMW_H_
#define WARPSMITH_CORE_KERNELS_ADAMW_H_

#include <cstdint>

#include "core/kernels/thread_pool.h"

namespace warpsmith {

struct AdamWRange;

struct AdamWOptions {
  float learning_rate = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;
  float gradient_scale = 1.0f;  // the factor of clipping
  int64_t step = 1;             // counts from 1: the bias correction
};

// Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (arXiv 1711.05101), algorithm 2, as
// torch.optim.AdamW:
//   g = gradient_scale * gradient;  p -= learning_rate * weight_decay * p
//   m = beta1 m + (1 - beta1) g;    v = beta2 v + (1 - beta2) g^2
//   p -= learning_rate / (1 - beta1^step) * m / (sqrt(v / (1 - beta2^step)) + epsilon)
// All arrays have `size` elements and do not overlap. The result does not depend on the number of threads.
void AdamWStep(const AdamWOptions& options, int64_t size, const float* gradient, float* parameter,
               float* first_moment, float* second_moment, ThreadPool* pool);

// Returns the constants of a step, worked out, for an empty range (kernel_set.h).
AdamWRange ConstantsOf(const AdamWOptions& options);

// Sum of squares in float64, in an order that does not depend on the number of threads.
double SumOfSquares(int64_t size, const float* values, ThreadPool* pool);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ADAMW_H_
