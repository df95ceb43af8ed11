#include "core/kernels/log_softmax.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("a token's score is its log-probability at the temperature, and the entropy of all") {
  const std::vector<double> logits = {1.0, -2.0, 0.5, 3.0, 3.0};
  double total = 0, entropy = 0;
  for (double z : logits) total += std::exp(z / 0.7);
  for (double z : logits) entropy -= std::exp(z / 0.7) / total * std::log(std::exp(z / 0.7) / total);
  const TokenScore<double> score = ScoreToken(logits.data(), 5, 2, 0.7);
  CHECK(score.log_prob == Approx(0.5 / 0.7 - std::log(total)).epsilon(1e-14));
  CHECK(score.entropy == Approx(entropy).epsilon(1e-14));
  CHECK(score.log_sum_exp == Approx(std::log(total)).epsilon(1e-14));
}

TEST_CASE("a vocabulary of one token has probability 1 and entropy 0") {
  const float logit = -5.0f;
  const TokenScore<float> score = ScoreToken(&logit, 1, 0, 1.0f);
  CHECK(score.log_prob == 0.0f);
  CHECK(score.entropy == 0.0f);
}

TEST_CASE("huge logits neither overflow nor lose the winner") {
  std::vector<float> logits(100, -1e30f);
  logits[42] = 1e30f;
  CHECK(ScoreToken(logits.data(), 100, 42, 1.0f).log_prob == 0.0f);
  CHECK(ScoreToken(logits.data(), 100, 42, 1.0f).entropy == 0.0f);
}

}  // namespace
}  // namespace warpsmith
