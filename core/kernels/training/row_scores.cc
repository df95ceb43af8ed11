#include "core/kernels/training/row_scores.h"

#include <vector>

#include "core/kernels/kernel_set.h"

namespace warpsmith {

void RowScoringReference(const RowScoring& s) {
  for (int64_t row = 0; row < s.rows; ++row) {
    const TokenScore<float> score = Kernels<float>().score_row(s.logits + row * s.row_stride, s.num_token_ids,
                                                               s.targets[row], s.inverse_temperature);
    s.log_probs[row] = score.log_prob;
    s.entropies[row] = score.entropy;
    s.log_sum_exps[row] = score.log_sum_exp;
  }
}

void RowScoringGradientReference(const RowScoringGradient<float>& g, DeviceDtype stored) {
  const RowScoring& s = g.forward;
  for (int64_t row = 0; row < s.rows; ++row) {
    const float* const logits = s.logits + row * s.row_stride;
    std::vector<float> gradient(logits, logits + s.num_token_ids);
    Kernels<float>().score_row_gradient(gradient.data(), s.num_token_ids, s.targets[row],
                                        s.inverse_temperature, s.log_sum_exps[row], g.log_prob_grads[row]);
    for (int64_t i = 0; i < s.row_stride; ++i) {
      g.logit_grads[row * s.row_stride + i] = i < s.num_token_ids ? RoundToDtype(gradient[i], stored) : 0.0f;
    }
  }
}

}  // namespace warpsmith
