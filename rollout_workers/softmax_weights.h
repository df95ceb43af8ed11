// The inner loops of sampling: largest logit, exponentials, their sums.
#ifndef WARPSMITH_ROLLOUT_WORKERS_SOFTMAX_WEIGHTS_H_
#define WARPSMITH_ROLLOUT_WORKERS_SOFTMAX_WEIGHTS_H_

#include "absl/types/span.h"

namespace warpsmith {

// Elements summed together by SoftmaxWeights.
inline constexpr int kSoftmaxBlock = 256;

// Largest element; NaNs are passed over, so all-NaN gives -infinity.
float LargestOf(absl::Span<const float> values);

// weights[i] = exp(logits[i] / temperature - largest / temperature), 0 below exp(-87); block_sums[b] is the
// sum of block b of kSoftmaxBlock weights. Returns the sum of all, NaN if any logit is NaN. Relative error of
// a weight below 3e-7. Every lane works as the scalar code would, so a row's result depends on that row
// alone.
double SoftmaxWeights(absl::Span<const float> logits, float largest, float temperature,
                      absl::Span<float> weights, absl::Span<double> block_sums);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_SOFTMAX_WEIGHTS_H_
