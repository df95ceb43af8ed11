// The most probable tokens beside one that was drawn: contract, and the reference on a CPU.
//
// With the ids of a row in descending order of their logits, equal ones in ascending order of ids, and d the id that
// token_sampling.h drew with log-prob L, the first `count` of the order have, in the distribution that L is of,
//   log_prob[id] = L + (logit[id] - logit[d]) / temperature,  with temperature 1 where it is 0, and L itself for d
#ifndef WARPSMITH_CORE_KERNELS_TOP_TOKENS_H_
#define WARPSMITH_CORE_KERNELS_TOP_TOKENS_H_

#include <cstdint>

#include "core/base/token_log_prob.h"

namespace warpsmith {

// As many as OpenAI's API gives.
inline constexpr int kTopTokensMax = 20;

// All arrays are dense, those of the same names as TokenSamples has them.
struct TopTokens {
  int64_t num_samples = 0;
  int64_t num_token_ids = 0;
  int64_t logits_stride = 0;
  const float* logits = nullptr;         // [rows, logits_stride]
  const int32_t* logits_rows = nullptr;  // [num_samples]
  const float* temperatures = nullptr;   // [num_samples]
  const int32_t* counts = nullptr;       // [num_samples] 0 to kTopTokensMax, at most num_token_ids
  const int32_t* token_ids =
      nullptr;  // [num_samples] that were drawn; below 0: none was, and nothing is written
  const float* log_probs = nullptr;  // [num_samples] of those
  TokenLogProb* tops = nullptr;      // [num_samples, kTopTokensMax] the first counts[i] of row i are written
};

void TopTokensReference(const TopTokens& top);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TOP_TOKENS_H_
