#include "core/kernels/residual_norm_cuda.h"

#include "tests/gpu/device_rate.h"
#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr float kEps = 1e-6f;

struct Result {
  std::vector<float> x, y;
};

Result OnDevice(int64_t rows, int64_t size, const std::vector<float>& x, const std::vector<float>& delta,
                const std::vector<float>& weight, int64_t num_deltas = 1) {
  const Bfloat16Array residual(x), added(delta), weights(weight), y(std::vector<float>(rows * size));
  REQUIRE(LaunchResidualNorm({rows, size, kEps, residual.get(), delta.empty() ? nullptr : added.get(),
                              weights.get(), y.get(), num_deltas},
                             nullptr) == cudaSuccess);
  return {residual.Read(), y.Read()};
}

Result OnHost(int64_t rows, int64_t size, std::vector<float> x, const std::vector<float>& delta,
              const std::vector<float>& weight, int64_t num_deltas = 1) {
  std::vector<float> y(rows * size);
  ResidualNormReference({rows, size, kEps, x.data(), delta.empty() ? nullptr : delta.data(), weight.data(),
                         y.data(), num_deltas});
  return {std::move(x), std::move(y)};
}

TEST_CASE("residual and norm on the device equal the CPU's for odd and even sizes") {
  for (const int64_t rows : {1, 3, 500}) {
    for (const int64_t size : {1, 8, 31, 256, 1000, 2056, 4096, 5120, 8192, 8200}) {
      INFO(rows << " x " << size);
      const std::vector<float> x = RandomBfloat16s(rows * size, 1), delta = RandomBfloat16s(rows * size, 2);
      const std::vector<float> weight = RandomBfloat16s(size, 3);
      const Result found = OnDevice(rows, size, x, delta, weight);
      const Result expected = OnHost(rows, size, x, delta, weight);
      CHECK(found.x == expected.x);                     // one float32 addition and one rounding
      CHECK(LargestError(found.y, expected.y) <= 1.0);  // sums of squares in another order
    }
  }
}

TEST_CASE("the sum of several deltas on the device equals the CPU's") {
  for (const int64_t num_deltas : {2, 3, 8}) {
    for (const int64_t size : {8, 31, 256, 5120, 8200}) {
      INFO(num_deltas << " deltas of " << size);
      constexpr int64_t kRows = 5;
      const std::vector<float> x = RandomBfloat16s(kRows * size, 1), weight = RandomBfloat16s(size, 3);
      const std::vector<float> deltas = RandomBfloat16s(num_deltas * kRows * size, 2);
      const Result found = OnDevice(kRows, size, x, deltas, weight, num_deltas);
      const Result expected = OnHost(kRows, size, x, deltas, weight, num_deltas);
      CHECK(found.x == expected.x);
      CHECK(LargestError(found.y, expected.y) <= 1.0);
    }
  }
}

TEST_CASE("without a residual x stays, and the norm is of x") {
  const std::vector<float> x = RandomBfloat16s(7 * 512, 1), weight = RandomBfloat16s(512, 3);
  const Result found = OnDevice(7, 512, x, {}, weight), expected = OnHost(7, 512, x, {}, weight);
  CHECK(found.x == x);
  CHECK(LargestError(found.y, expected.y) <= 1.0);
}

TEST_CASE("a row alone has the bits that it has among 63 others") {
  constexpr int64_t kSize = 5120, kRows = 64, kRow = 41;
  const std::vector<float> x = RandomBfloat16s(kRows * kSize, 1), delta = RandomBfloat16s(kRows * kSize, 2);
  const std::vector<float> weight = RandomBfloat16s(kSize, 3);
  const auto row_of = [](const std::vector<float>& all) {
    return std::vector<float>(all.begin() + kRow * kSize, all.begin() + (kRow + 1) * kSize);
  };
  const Result all = OnDevice(kRows, kSize, x, delta, weight);
  const Result alone = OnDevice(1, kSize, row_of(x), row_of(delta), weight);
  CHECK(alone.x == row_of(all.x));
  CHECK(alone.y == row_of(all.y));
}

TEST_CASE("the rate of residual and norm at 64 and at 8,192 rows of 4,096 columns") {
  constexpr int64_t kSize = 4096;
  for (const int64_t rows : {64, 8192}) {
    const Bfloat16Array x(RandomBfloat16s(rows * kSize, 1)), delta(RandomBfloat16s(rows * kSize, 2));
    const Bfloat16Array weight(RandomBfloat16s(kSize, 3)), y(std::vector<float>(rows * kSize));
    PrintRate(rows == 64 ? "residual norm, 64 rows" : "residual norm, 8192 rows",
              4 * rows * kSize * sizeof(uint16_t), [&] {
                return LaunchResidualNorm({rows, kSize, kEps, x.get(), delta.get(), weight.get(), y.get()},
                                          nullptr);
              });
  }
}

}  // namespace
}  // namespace warpsmith
