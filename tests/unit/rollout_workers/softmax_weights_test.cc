#include "rollout_workers/softmax_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::vector<float> Logits(int size, double spread) {
  std::vector<float> logits(size);
  for (int i = 0; i < size; ++i) logits[i] = static_cast<float>((UniformDouble(size, i) - 0.5) * spread);
  return logits;
}

}  // namespace

TEST_CASE("weights are exp to float accuracy and their block sums add up, for sizes around the blocks") {
  for (const int size : {1, 15, 16, 17, 255, 256, 257, 1000, 4099}) {
    for (const double spread : {1.0, 60.0, 300.0}) {
      const std::vector<float> logits = Logits(size, spread);
      std::vector<float> weights(size);
      std::vector<double> sums((size + kSoftmaxBlock - 1) / kSoftmaxBlock);
      const float largest = LargestOf(logits);
      CHECK(largest == *std::max_element(logits.begin(), logits.end()));
      const double total =
          SoftmaxWeights(logits, largest, 0.7F, absl::MakeSpan(weights), absl::MakeSpan(sums));
      double expected_total = 0;
      for (int i = 0; i < size; ++i) {
        const float x = logits[i] / 0.7F - largest / 0.7F;
        const double expected = x < -87.0F ? 0.0 : std::exp(static_cast<double>(x));
        CHECK(std::abs(weights[i] - expected) <= 3e-7 * expected);
        expected_total += expected;
      }
      CHECK(total == Approx(expected_total).epsilon(2e-6));
      CHECK(total == Approx(std::accumulate(sums.begin(), sums.end(), 0.0)).epsilon(1e-12));
    }
  }
}

TEST_CASE("minus infinity weighs nothing and a NaN is not lost in the sum") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> logits(40, -kInfinity);
  logits[20] = 1;
  std::vector<float> weights(40);
  std::vector<double> sums(1);
  CHECK(SoftmaxWeights(logits, LargestOf(logits), 1, absl::MakeSpan(weights), absl::MakeSpan(sums)) == 1.0);
  CHECK(weights[19] == 0);
  logits[39] = std::numeric_limits<float>::quiet_NaN();
  CHECK(LargestOf(logits) == 1);
  CHECK(std::isnan(SoftmaxWeights(logits, 1, 1, absl::MakeSpan(weights), absl::MakeSpan(sums))));
}

}  // namespace warpsmith
