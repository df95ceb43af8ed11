#include "core/kernels/linear_gelu.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("the reference is gelu of x w^T + b, known values of gelu included") {
  const float x[] = {1.0f, 2.0f, -1.0f, 0.0f}, weight[] = {1.0f, 0.0f, 0.0f, 1.0f, 1.0f, 1.0f};
  const float bias[] = {0.0f, -1.0f, 0.0f};
  double y[6];
  LinearGeluReference({2, 3, 2}, x, weight, bias, y);
  const double gelu_of_1 = 0.8411919906082768, gelu_of_3 = 2.996362607918227,
               gelu_of_minus_1 = -0.15880800939172324;
  const double expected[] = {gelu_of_1,       gelu_of_1,       gelu_of_3,
                             gelu_of_minus_1, gelu_of_minus_1, gelu_of_minus_1};
  for (int i = 0; i < 6; ++i) CHECK(y[i] == Approx(expected[i]).epsilon(1e-9));
}

}  // namespace
}  // namespace warpsmith
