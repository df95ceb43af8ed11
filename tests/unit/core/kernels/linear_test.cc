#include "core/kernels/linear.h"

#include <utility>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("the reference is x w^T, with bias and residual where the shape has them") {
  const float x[] = {1, 2, -1, 3}, weight[] = {1, 0, 0, 1, 2, 5}, bias[] = {10, 20, 30};
  const float residual[] = {100, 200, 300, 400, 500, 600};
  double y[6];
  LinearReference({.columns = 3, .depth = 2}, 2, x, weight, nullptr, nullptr, y);
  const double plain[] = {1, 2, 12, -1, 3, 13};
  for (int i = 0; i < 6; ++i) CHECK(y[i] == plain[i]);
  LinearReference({.columns = 3, .depth = 2, .has_bias = true, .has_residual = true}, 2, x, weight, bias,
                  residual, y);
  for (int i = 0; i < 6; ++i) CHECK(y[i] == plain[i] + bias[i % 3] + residual[i]);
}

TEST_CASE("every row count up to the largest bucket belongs to one bucket, and no other does") {
  const int64_t buckets[] = {1, 8, 64};
  for (const auto& [rows, bucket] : {std::pair<int64_t, int>{1, 0}, {2, 1}, {8, 1}, {9, 2}, {64, 2}}) {
    CHECK(BucketOfRows(rows, buckets) == bucket);
    CHECK(FirstRowsOfBucket(bucket, buckets) <= rows);
  }
  for (const int64_t rows : {-1, 0, 65}) CHECK(BucketOfRows(rows, buckets) == -1);
  CHECK(FirstRowsOfBucket(0, buckets) == 1);
  CHECK(FirstRowsOfBucket(2, buckets) == 9);
}

TEST_CASE("shapes that differ in anything are different keys") {
  const LinearShape shape{.columns = 3, .depth = 2};
  const auto same = [&](const LinearShape& other) { return !(shape < other) && !(other < shape); };
  CHECK(same({.columns = 3, .depth = 2}));
  CHECK_FALSE(same({.columns = 4, .depth = 2}));
  CHECK_FALSE(same({.columns = 3, .depth = 3}));
  CHECK_FALSE(same({.columns = 3, .depth = 2, .has_bias = true}));
  CHECK_FALSE(same({.columns = 3, .depth = 2, .has_residual = true}));
  CHECK_FALSE(same({.columns = 3, .depth = 2, .output = LinearOutput::kFloat32}));
}

}  // namespace
}  // namespace warpsmith
