#include "core/kernels/muon.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::vector<float> Random(int64_t size, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i)
    values[static_cast<size_t>(i)] = static_cast<float>(2 * UniformDouble(seed, i) - 1);
  return values;
}

// The largest difference of the Gram matrix of the smaller side from the identity: bounds how far singular
// values are from 1.
double DistanceFromOrthogonal(int64_t rows, int64_t columns, const std::vector<float>& x) {
  const int64_t narrow = std::min(rows, columns), tall = std::max(rows, columns);
  const auto at = [&](int64_t t, int64_t n) {
    return static_cast<double>(x[static_cast<size_t>(rows >= columns ? t * columns + n : n * columns + t)]);
  };
  double distance = 0;
  for (int64_t i = 0; i < narrow; ++i) {
    for (int64_t j = 0; j < narrow; ++j) {
      double sum = i == j ? -1 : 0;
      for (int64_t t = 0; t < tall; ++t) sum += at(t, i) * at(t, j);
      distance = std::max(distance, std::abs(sum));
    }
  }
  return distance;
}

struct Shape {
  int64_t rows, columns;
};

}  // namespace

TEST_CASE("a random matrix, tall, wide or square, comes out nearly orthogonal") {
  std::vector<float> scratch;
  for (const Shape& shape : {Shape{96, 40}, Shape{40, 96}, Shape{31, 67}, Shape{1, 5}}) {
    std::vector<float> x = Random(shape.rows * shape.columns, 7);
    Orthogonalise(shape.rows, shape.columns, x.data(), &scratch, nullptr);
    CAPTURE(shape.rows, shape.columns);
    CHECK(DistanceFromOrthogonal(shape.rows, shape.columns, x) < 0.55);
  }
}

TEST_CASE("a diagonal matrix keeps its vectors: each value runs through the published polynomial") {
  std::vector<float> x = {3, 0, 0, 4}, scratch;
  Orthogonalise(2, 2, x.data(), &scratch, nullptr);
  double expected[] = {0.6, 0.8};
  for (double& value : expected) {
    for (int i = 0; i < 5; ++i) {
      value = 3.4445 * value - 4.7750 * std::pow(value, 3) + 2.0315 * std::pow(value, 5);
    }
  }
  CHECK(x[0] == Approx(expected[0]).epsilon(1e-4));
  CHECK(x[3] == Approx(expected[1]).epsilon(1e-4));
  CHECK(std::abs(x[1]) + std::abs(x[2]) < 1e-6);
}

TEST_CASE("zeros stay zeros") {
  std::vector<float> x(12, 0.0f), scratch;
  Orthogonalise(3, 4, x.data(), &scratch, nullptr);
  CHECK(x == std::vector<float>(12, 0.0f));
}

TEST_CASE("two Muon steps follow the published formula, with clipping and decay") {
  constexpr int64_t kRows = 6, kColumns = 9, kSize = kRows * kColumns;
  std::vector<float> p = Random(kSize, 1), m(kSize), scratch, em(kSize);
  std::vector<float> expected = p;
  const MuonOptions options{
      .learning_rate = 0.01f, .momentum = 0.9f, .weight_decay = 0.1f, .gradient_scale = 0.5f};
  for (uint64_t step = 0; step < 2; ++step) {
    const std::vector<float> g = Random(kSize, 10 + step);
    MuonStep(options, kRows, kColumns, g.data(), p.data(), m.data(), &scratch, nullptr);
    std::vector<float> o(kSize);
    for (size_t i = 0; i < o.size(); ++i) {
      em[i] = 0.9f * em[i] + 0.1f * 0.5f * g[i];
      o[i] = 0.9f * em[i] + 0.1f * 0.5f * g[i];
    }
    Orthogonalise(kRows, kColumns, o.data(), &scratch, nullptr);
    for (size_t i = 0; i < o.size(); ++i) {
      expected[i] -= 0.01f * 0.1f * expected[i];
      expected[i] -= 0.01f * 0.2f * 3.0f * o[i];
    }
  }
  for (size_t i = 0; i < p.size(); ++i) CHECK(p[i] == Approx(expected[i]).epsilon(1e-4).margin(1e-5));
}

TEST_CASE("a step has the same bits with one thread and with two, and with scratch of another size") {
  constexpr int64_t kRows = 130, kColumns = 70, kSize = kRows * kColumns;
  const std::vector<float> g = Random(kSize, 1);
  std::vector<float> p = Random(kSize, 2), m = Random(kSize, 3), p2 = p, m2 = m;
  std::vector<float> scratch, scratch2(100000, 5.0f);
  ThreadPool pool(2);
  MuonStep({}, kRows, kColumns, g.data(), p.data(), m.data(), &scratch, nullptr);
  MuonStep({}, kRows, kColumns, g.data(), p2.data(), m2.data(), &scratch2, &pool);
  CHECK(p == p2);
  CHECK(m == m2);
}

}  // namespace warpsmith
