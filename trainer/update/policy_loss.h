// The GRPO objective, token by token, with its gradient in closed form.
//
// With p the log-probability under the policy being updated, o under the policy at the start of the step, b
// under the worker that sampled, f under the reference model, A the advantage, N the tokens of the whole
// update on all ranks:
//
//   r = exp(p - o)                                importance ratio
//   w = min(exp(o - b), weight_max)               truncated importance weight (Yao et al. 2025,
//                                                 "Your Efficient RL Framework...")
//   s = min(r A, clamp(r, 1 - low, 1 + high) A)   clipped surrogate, "clip-higher" of DAPO
//                                                 (arXiv 2503.14476)
//   k = exp(f - p) - (f - p) - 1                  k3 estimate of the KL divergence to the reference
//
//   loss = sum over tokens of (-w s + kl_weight k) / N
//
//   d loss / d p = (-w A r [not clipped] + kl_weight (1 - exp(f - p))) / N
//
// Dividing by the one global N makes the gradient independent of micro-batches, packing and ranks.
#ifndef WARPSMITH_TRAINER_UPDATE_POLICY_LOSS_H_
#define WARPSMITH_TRAINER_UPDATE_POLICY_LOSS_H_

#include <array>
#include <cstdint>

namespace warpsmith {

struct PolicyLossOptions {
  double clip_low = 0.2;
  double clip_high = 0.28;
  double weight_max = 2.0;  // of the truncated importance weight
  double kl_weight = 0.0;   // 0: no reference model is needed
};

// What is known of one answer token. Log-probabilities are log softmax(logits / temperature) before any
// truncation, over the ids that the tokenizer has.
struct TokenTerms {
  double log_prob = 0;
  double old_log_prob = 0;
  double worker_log_prob = 0;
  double reference_log_prob = 0;
  double advantage = 0;
};

// Bins of |o - b|, eight for each power of two from 2^-20 on; the first has all below, the last all above and what is
// not a number.
inline constexpr int kDifferenceBins = 8 * 24;

// Sums over tokens; divide by num_tokens for means. Adding them up in any order gives the metrics of the
// whole.
struct PolicyLossSums {
  double loss = 0;    // already divided by the global token count
  double kl = 0;      // k3 to the reference
  double old_kl = 0;  // k3 of old to updated policy
  double entropy = 0;
  int64_t num_tokens = 0;
  int64_t num_clipped = 0;    // tokens whose surrogate was clipped
  int64_t num_truncated = 0;  // tokens whose weight was truncated
  // |o - b| by token: how far the worker that sampled is from the trainer.
  double worker_difference = 0;
  double worker_difference_max = 0;
  std::array<int64_t, kDifferenceBins> worker_differences = {};  // counts by DifferenceBin

  void Add(const PolicyLossSums& other);
  // Returns a bound that 99 % of the differences do not exceed, at most a tenth above the smallest such bound, or the
  // largest difference where that is above 14; not a number where there are none.
  double WorkerDifferenceP99() const;
};

// The gradient d loss / d log_prob of one token, given the tokens of the whole update; its terms are added to
// `sums`.
double AddToken(const TokenTerms& token, const PolicyLossOptions& options, int64_t global_num_tokens,
                PolicyLossSums& sums);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_UPDATE_POLICY_LOSS_H_
