#include "core/kernels/adamw.h"

#include <cmath>
#include <vector>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::vector<float> Random(int64_t size, uint64_t seed) {
  std::vector<float> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = static_cast<float>(2 * UniformDouble(seed, i) - 1);
  return values;
}

TEST_CASE("three AdamW steps follow the published formula") {
  constexpr int64_t kSize = 37;
  std::vector<float> p = Random(kSize, 1), m(kSize), v(kSize);
  std::vector<double> expected(p.begin(), p.end()), em(kSize), ev(kSize);
  AdamWOptions options{
      .learning_rate = 0.01f, .beta1 = 0.9f, .beta2 = 0.99f, .weight_decay = 0.1f, .gradient_scale = 0.5f};
  for (options.step = 1; options.step <= 3; ++options.step) {
    const std::vector<float> g = Random(kSize, 10 + options.step);
    AdamWStep(options, kSize, g.data(), p.data(), m.data(), v.data(), nullptr);
    for (int64_t i = 0; i < kSize; ++i) {
      const double scaled = 0.5 * g[i];
      em[i] = 0.9 * em[i] + 0.1 * scaled;
      ev[i] = 0.99 * ev[i] + 0.01 * scaled * scaled;
      const double step = em[i] / (1 - std::pow(0.9, options.step));
      expected[i] -= 0.01 * 0.1 * expected[i];
      expected[i] -= 0.01 * step / (std::sqrt(ev[i] / (1 - std::pow(0.99, options.step))) + 1e-8);
    }
  }
  for (int64_t i = 0; i < kSize; ++i) CHECK(p[i] == Approx(expected[i]).epsilon(1e-5).margin(1e-6));
}

TEST_CASE("an update and a norm have the same bits with one thread and with two") {
  constexpr int64_t kSize = 50000;
  const std::vector<float> g = Random(kSize, 1);
  std::vector<float> p = Random(kSize, 2), m = Random(kSize, 3), v(kSize, 0.5f);
  std::vector<float> p2 = p, m2 = m, v2 = v;
  ThreadPool pool(2);
  AdamWStep({}, kSize, g.data(), p.data(), m.data(), v.data(), nullptr);
  AdamWStep({}, kSize, g.data(), p2.data(), m2.data(), v2.data(), &pool);
  CHECK(p == p2);
  CHECK(m == m2);
  CHECK(v == v2);
  CHECK(SumOfSquares(kSize, g.data(), nullptr) == SumOfSquares(kSize, g.data(), &pool));
}

TEST_CASE("the sum of squares of nothing is zero") { CHECK(SumOfSquares(0, nullptr, nullptr) == 0.0); }

}  // namespace
}  // namespace warpsmith
