#include "core/kernels/training/matrix_product.h"

#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::vector<double> Multiply(const MatrixProduct& product, const std::vector<float>& a,
                             const std::vector<float>& b, std::vector<double> c = {0, 0, 0, 0}) {
  MatrixProductReference(product, a.data(), b.data(), c.data());
  return c;
}

TEST_CASE("a product takes either operand transposed, and adds where it is told") {
  const std::vector<float> a = {1, 2, 3, 4}, b = {5, 6, 7, 8};
  MatrixProduct product{.rows = 2, .columns = 2, .depth = 2};
  CHECK(Multiply(product, a, b) == std::vector<double>{19, 22, 43, 50});
  product.b_transposed = true;
  CHECK(Multiply(product, a, b) == std::vector<double>{17, 23, 39, 53});
  product.a_transposed = true;
  CHECK(Multiply(product, a, b) == std::vector<double>{23, 31, 34, 46});
  product.adds = true;
  CHECK(Multiply(product, a, b, {1, 1, 1, 1}) == std::vector<double>{24, 32, 35, 47});
}

TEST_CASE("the three products of a linear layer fit together") {
  // Two tokens, one column, two inputs: y = x W^T, dx = dy W, dW = dy^T x.
  const std::vector<float> x = {1, 2, 3, 4}, weight = {5, 6}, y_grad = {7, 8};
  CHECK(Multiply(LinearForward(2, 1, 2), x, weight, {0, 0}) == std::vector<double>{17, 39});
  CHECK(Multiply(LinearInputGradient(2, 1, 2), y_grad, weight) == std::vector<double>{35, 42, 40, 48});
  CHECK(Multiply(LinearWeightGradient(2, 1, 2), y_grad, x, {100, 200}) == std::vector<double>{131, 246});
}

}  // namespace
}  // namespace warpsmith
