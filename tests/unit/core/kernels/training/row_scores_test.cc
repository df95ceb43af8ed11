#include "core/kernels/training/row_scores.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("scores and their gradient are of the tokenizer's ids alone") {
  constexpr int64_t kIds = 3, kStride = 8;
  constexpr float kInverseTemperature = 0.5f;
  std::vector<float> logits(2 * kStride, 100.0f);  // of padding
  for (int i = 0; i < kIds; ++i) logits[i] = logits[kStride + 2 - i] = static_cast<float>(2 * i);
  const std::vector<int32_t> targets = {2, 1};
  std::vector<float> log_probs(2), entropies(2), log_sum_exps(2), gradient(2 * kStride, 7.0f);
  const RowScoring scoring = {2,
                              kIds,
                              kStride,
                              kInverseTemperature,
                              logits.data(),
                              targets.data(),
                              log_probs.data(),
                              entropies.data(),
                              log_sum_exps.data()};
  RowScoringReference(scoring);
  const double sum = 1 + std::exp(1.0) + std::exp(2.0);
  CHECK(log_sum_exps[0] == Approx(std::log(sum)));
  CHECK(log_probs[0] == Approx(2 - std::log(sum)));
  CHECK(log_probs[1] == Approx(1 - std::log(sum)));
  const double mean = (std::exp(1.0) + 2 * std::exp(2.0)) / sum;
  CHECK(entropies[0] == Approx(std::log(sum) - mean));

  const std::vector<float> log_prob_grads = {1, -2};
  RowScoringGradientReference({scoring, log_prob_grads.data(), gradient.data()}, DeviceDtype::kFloat32);
  CHECK(gradient[0] == Approx(-0.5 / sum));
  CHECK(gradient[2] == Approx(0.5 * (1 - std::exp(2.0) / sum)));
  CHECK(gradient[kStride + 1] == Approx(-2 * 0.5 * (1 - std::exp(1.0) / sum)));
  for (int64_t i = kIds; i < kStride; ++i) CHECK(gradient[i] == 0);
}

}  // namespace
}  // namespace warpsmith
