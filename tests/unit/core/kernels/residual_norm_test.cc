#include "core/kernels/residual_norm.h"

#include <cmath>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("the residual is rounded before it is normed") {
  // 1 + 2^-8 is a tie and rounds to 1; 2 + 1 is exact. Weights show which element is which.
  float x[] = {1, 2}, y[2];
  const float delta[] = {0x1p-8f, 1}, weight[] = {4, 8};
  ResidualNormReference({1, 2, 0, x, delta, weight, y});
  CHECK(x[0] == 1);
  CHECK(x[1] == 3);
  const double rms = std::sqrt((1 + 9) / 2.0);
  CHECK(y[0] == Approx(4 / rms).epsilon(0x1p-8));
  CHECK(y[1] == Approx(24 / rms).epsilon(0x1p-8));
}

TEST_CASE("several deltas are added one after another, and their sum is rounded once") {
  // Each 2^-8 alone is a tie beside 1 and would be lost; both together are not.
  float x[] = {1, 2, 1, 2}, y[4];
  const float deltas[] = {0x1p-8f, 1, 0, 2, 0x1p-8f, 3, 0, 4}, weight[] = {1, 1};
  ResidualNormReference({2, 2, 0, x, deltas, weight, y, 2});
  CHECK(x[0] == 1 + 0x1p-7f);
  CHECK(x[1] == 6);
  CHECK(x[2] == 1);
  CHECK(x[3] == 8);
  CHECK(y[3] == Approx(8 / std::sqrt(32.5)).epsilon(0x1p-8));
}

TEST_CASE("without a residual x is only read, and each row has its own norm") {
  float x[] = {3, 4, 30, 40}, y[4];
  const float weight[] = {1, 1};
  ResidualNormReference({2, 2, 0, x, nullptr, weight, y});
  CHECK(x[0] == 3);
  CHECK(x[3] == 40);
  CHECK(y[0] == y[2]);
  CHECK(y[1] == y[3]);
  CHECK(y[1] == Approx(4 / std::sqrt(12.5)).epsilon(0x1p-8));
}

}  // namespace
}  // namespace warpsmith
