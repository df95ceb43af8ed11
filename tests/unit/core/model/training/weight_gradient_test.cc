#include "core/model/training/weight_gradient.h"

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::vector<double> Random(int64_t size, uint64_t seed) {
  std::vector<double> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = UniformDouble(seed, i) - 0.5;
  return values;
}

TEST_CASE("a weight gradient adds the outer products of all tokens, over several blocks of both") {
  for (const int64_t tokens : {1, 256, 300}) {
    constexpr int64_t kRows = 101, kColumns = 70;
    const std::vector<double> dy = Random(tokens * kRows, 1), x = Random(tokens * kColumns, 2);
    std::vector<double> dw = Random(kRows * kColumns, 3), other(kRows * kRows);
    const std::vector<double> before = dw;
    ThreadPool pool(2);
    AddWeightGradients<double>({{dy.data(), kRows, x.data(), kColumns, dw.data()},
                                {dy.data(), kRows, dy.data(), kRows, other.data()}},
                               tokens, &pool);
    for (int64_t i = 0; i < kRows * kColumns; i += 13) {
      double expected = before[i];
      for (int64_t t = 0; t < tokens; ++t)
        expected += dy[t * kRows + i / kColumns] * x[t * kColumns + i % kColumns];
      CHECK(dw[i] == Approx(expected).epsilon(1e-12).margin(1e-12));
    }
    CHECK(other[5 * kRows + 9] == Approx(other[9 * kRows + 5]));
  }
}

}  // namespace
}  // namespace warpsmith
