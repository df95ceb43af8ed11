#include "core/kernels/top_tokens.h"

#include <limits>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE(
    "the most probable tokens come in order, equal ones by id, with log-probs counted from the drawn one's") {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {0, 2, 1, 2, kNever, 9, /*row 1*/ 3, 3, 3, 3, 3, 9};
  const std::vector<int32_t> rows = {0, 1, 0, 0}, counts = {5, 2, 0, 1}, drawn = {2, 1, 0, -1};
  const std::vector<float> temperatures = {0.5F, 0, 1, 1}, log_probs = {-3.0F, -1.5F, -1, -1};
  std::vector<TokenLogProb> tops(4 * kTopTokensMax, {-7, 0});
  TopTokensReference({.num_samples = 4,
                      .num_token_ids = 5,  // the sixth column is padding
                      .logits_stride = 6,
                      .logits = logits.data(),
                      .logits_rows = rows.data(),
                      .temperatures = temperatures.data(),
                      .counts = counts.data(),
                      .token_ids = drawn.data(),
                      .log_probs = log_probs.data(),
                      .tops = tops.data()});
  CHECK(tops[0] == TokenLogProb{1, -1});
  CHECK(tops[1] == TokenLogProb{3, -1});
  CHECK(tops[2] == TokenLogProb{2, -3});
  CHECK(tops[3] == TokenLogProb{0, -5});
  CHECK(tops[4] == TokenLogProb{4, kNever});
  CHECK(tops[5].token_id == -7);
  CHECK(tops[kTopTokensMax] == TokenLogProb{0, -1.5F});
  CHECK(tops[kTopTokensMax + 1] == TokenLogProb{1, -1.5F});
  for (const size_t sample : {2, 3}) CHECK(tops[sample * kTopTokensMax].token_id == -7);
}

}  // namespace warpsmith
