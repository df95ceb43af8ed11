#include "core/kernels/top_tokens.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace warpsmith {

void TopTokensReference(const TopTokens& top) {
  std::vector<int32_t> ids(top.num_token_ids);
  for (int64_t sample = 0; sample < top.num_samples; ++sample) {
    const int32_t drawn = top.token_ids[sample];
    if (drawn < 0) continue;
    const float* const logits = top.logits + top.logits_rows[sample] * top.logits_stride;
    const float temperature = top.temperatures[sample] == 0 ? 1.0F : top.temperatures[sample];
    const int32_t count = top.counts[sample];
    std::iota(ids.begin(), ids.end(), 0);
    std::partial_sort(ids.begin(), ids.begin() + count, ids.end(), [logits](int32_t a, int32_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    });
    for (int32_t i = 0; i < count; ++i) {
      const double shift = (double{logits[ids[i]]} - logits[drawn]) / temperature;
      const auto log_prob = static_cast<float>(top.log_probs[sample] + shift);
      top.tops[sample * kTopTokensMax + i] = {ids[i], ids[i] == drawn ? top.log_probs[sample] : log_prob};
    }
  }
}

}  // namespace warpsmith
