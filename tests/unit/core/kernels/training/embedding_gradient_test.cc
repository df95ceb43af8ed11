#include "core/kernels/training/embedding_gradient.h"

#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("rows are sorted by token, those of a token stay in order") {
  const std::vector<int64_t> tokens = {7, 2, 7, 0, 2, 7};
  const RowsByToken sorted = SortByToken(tokens);
  CHECK(sorted.tokens == std::vector<int32_t>{0, 2, 7});
  CHECK(sorted.indptr == std::vector<int32_t>{0, 1, 3, 6});
  CHECK(sorted.rows == std::vector<int32_t>{3, 1, 4, 0, 2, 5});
  CHECK(SortByToken({}).indptr == std::vector<int32_t>{0});
}

TEST_CASE("the gradient of an embedding is the sum over a token's rows, added to what is there") {
  const std::vector<int64_t> tokens = {1, 0, 1};
  const RowsByToken sorted = SortByToken(tokens);
  const std::vector<float> x_grad = {1, 2, 3, 4, 5, 6};
  std::vector<float> sums = {10, 20, 30, 40, 50, 60};
  EmbeddingGradientReference(
      {2, 2, sorted.tokens.data(), sorted.indptr.data(), sorted.rows.data(), x_grad.data(), sums.data()});
  CHECK(sums == std::vector<float>{13, 24, 36, 48, 50, 60});
}

}  // namespace
}  // namespace warpsmith
