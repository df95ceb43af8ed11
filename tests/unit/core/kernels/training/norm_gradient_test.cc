#include "core/kernels/training/norm_gradient.h"

#include <vector>

#include "core/base/counter_random.h"
#include "core/kernels/kernel_set.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::vector<float> Random(int64_t size, uint64_t seed) {
  std::vector<float> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = RoundToBfloat16(static_cast<float>(UniformDouble(seed, i)));
  return values;
}

TEST_CASE("the gradient of a norm is added to and rounded, and y comes beside it") {
  constexpr int64_t kRows = 3, kSize = 24;
  const std::vector<float> x = Random(kRows * kSize, 1), weight = Random(kSize, 2),
                           y_grad = Random(kRows * kSize, 3), before = Random(kRows * kSize, 4);
  std::vector<float> x_grad = before, y = y_grad, weight_grad(kSize, 1.0f);
  NormGradientReference({kRows, kSize, 1e-6f, x.data(), weight.data(), y.data(), x_grad.data(), y.data(),
                         nullptr, weight_grad.data()});
  const std::vector<double> wide_weight(weight.begin(), weight.end());
  std::vector<double> expected_weight_grad(kSize, 1.0);
  for (int64_t row = 0; row < kRows; ++row) {
    const auto row_of = [&](const std::vector<float>& values) {
      return std::vector<double>(values.begin() + row * kSize, values.begin() + (row + 1) * kSize);
    };
    std::vector<double> expected = row_of(before), normed(kSize);
    Kernels<double>().rms_norm(row_of(x).data(), wide_weight.data(), kSize, 1e-6, normed.data());
    Kernels<double>().rms_norm_gradient(row_of(x).data(), wide_weight.data(), row_of(y_grad).data(), kSize,
                                        1e-6, expected.data(), expected_weight_grad.data());
    for (int64_t i = 0; i < kSize; ++i) {
      CHECK(x_grad[row * kSize + i] == Approx(expected[i]).epsilon(0x1p-8).margin(1e-5));
      CHECK(y[row * kSize + i] == Approx(normed[i]).epsilon(0x1p-8));
      CHECK(RoundToBfloat16(x_grad[row * kSize + i]) == x_grad[row * kSize + i]);
    }
  }
  for (int64_t i = 0; i < kSize; ++i) CHECK(weight_grad[i] == Approx(expected_weight_grad[i]).epsilon(1e-5));
}

TEST_CASE("sums over rows are cut into as many parts on every device") {
  CHECK(NumGradientParts(0) == 1);
  CHECK(NumGradientParts(7) == 7);
  CHECK(NumGradientParts(100000) == kGradientPartsMax);
}

}  // namespace
}  // namespace warpsmith
