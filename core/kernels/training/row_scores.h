// Log-probabilities of given tokens from rows of logits, and the gradient of a loss by them: contract, formulas, and
// the reference on a CPU.
//
// With z = logits / temperature over the token ids of a row:
//   log_sum_exp = log sum exp z;  log_prob = z[target] - log_sum_exp;  entropy = -sum p log p, in nats
//   logit_grad[i] = round((1[i == target] - exp(z[i] - log_sum_exp)) / temperature * log_prob_grad)
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_ROW_SCORES_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_ROW_SCORES_H_

#include <cstdint>

#include "core/kernels/device_dtype.h"

namespace warpsmith {

// Rows of logits, of which the first `num_token_ids` columns count: those behind them are padding of the head.
struct RowScoring {
  int64_t rows = 0;
  int64_t num_token_ids = 0;
  int64_t row_stride = 0;  // elements of a row of logits, padding included
  float inverse_temperature = 1;
  const float* logits = nullptr;     // [rows, row_stride]
  const int32_t* targets = nullptr;  // [rows], below num_token_ids
  float* log_probs = nullptr;        // [rows]
  float* entropies = nullptr;        // [rows]
  float* log_sum_exps = nullptr;     // [rows]
};

// T is what is stored: bfloat16 or float on a device, float in the reference.
template <typename T>
struct RowScoringGradient {
  RowScoring forward;                     // its log_sum_exps are read; log_probs and entropies are not used
  const float* log_prob_grads = nullptr;  // [rows]
  T* logit_grads = nullptr;  // [rows, row_stride]: zeros in padding. May be forward.logits if T is float
};

// Compute by KernelSet::score_row and score_row_gradient.
void RowScoringReference(const RowScoring& scoring);
void RowScoringGradientReference(const RowScoringGradient<float>& gradient,
                                 DeviceDtype stored = DeviceDtype::kBfloat16);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_ROW_SCORES_H_
