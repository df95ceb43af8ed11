#include "core/kernels/swiglu.h"

#include <cmath>
#include <vector>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

static_assert(GateColumn(0) == 0 && GateColumn(15) == 15 && GateColumn(16) == 32 && GateColumn(33) == 65);

TEST_CASE("SwiGLU takes gate and up from where GateColumn says, in every row") {
  constexpr int64_t kRows = 3, kSize = 48;
  std::vector<float> gate_up(kRows * 2 * kSize), y(kRows * kSize);
  for (int64_t i = 0; i < std::ssize(gate_up); ++i) {
    gate_up[i] = static_cast<float>(8 * UniformDouble(5, i) - 4);
  }
  SwiGluReference({kRows, kSize, gate_up.data(), y.data()});
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < kSize; ++i) {
      const float* const from = gate_up.data() + row * 2 * kSize + GateColumn(i);
      const double gate = from[0], up = from[kSwiGluBlock];
      CHECK(y[row * kSize + i] == Approx(gate / (1 + std::exp(-gate)) * up).epsilon(0x1p-8).margin(1e-6));
    }
  }
}

TEST_CASE("rows that are taken as one have the columns of rows that are taken apart") {
  constexpr int64_t kSize = 48;
  for (int64_t row = 0; row < 5; ++row) {
    for (int64_t i = 0; i < kSize; ++i) {
      REQUIRE(GateColumn(row * kSize + i) == row * 2 * kSize + GateColumn(i));
    }
  }
}

}  // namespace
}  // namespace warpsmith
