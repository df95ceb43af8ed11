#include "core/kernels/training/column_sums.h"

#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("sums of columns are added to what is there, of rows that lie apart as well") {
  const std::vector<float> x = {1, 2, 30, 3, 4, 50};
  std::vector<float> sums = {100, 200};
  ColumnSumsReference({3, 2, x.data(), sums.data()});
  CHECK(sums == std::vector<float>{1 + 30 + 4 + 100, 2 + 3 + 50 + 200});
  sums = {100, 200};
  ColumnSumsReference({2, 2, x.data(), sums.data(), 3});
  CHECK(sums == std::vector<float>{104, 206});
}

}  // namespace
}  // namespace warpsmith
