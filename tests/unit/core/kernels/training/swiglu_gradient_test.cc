#include "core/kernels/training/swiglu_gradient.h"

#include <cmath>
#include <vector>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("the gradient of SwiGLU is the slope of SwiGLU, and may take the place of what it is made of") {
  constexpr int64_t kRows = 2, kSize = 32;
  std::vector<float> gate_up(kRows * 2 * kSize), y_grad(kRows * kSize);
  for (size_t i = 0; i < gate_up.size(); ++i) gate_up[i] = static_cast<float>(8 * UniformDouble(5, i) - 4);
  for (size_t i = 0; i < y_grad.size(); ++i) y_grad[i] = static_cast<float>(UniformDouble(6, i));
  std::vector<float> gradient = gate_up, y = y_grad;
  SwiGluGradientReference({kRows, kSize, gradient.data(), y.data(), gradient.data(), y.data()},
                          DeviceDtype::kFloat32);
  const auto swiglu = [](double gate, double up) { return gate / (1 + std::exp(-gate)) * up; };
  for (int64_t i = 0; i < kRows * kSize; ++i) {
    const double gate = gate_up[GateColumn(i)], up = gate_up[GateColumn(i) + kSwiGluBlock], step = 1e-5;
    const double slope = (swiglu(gate + step, up) - swiglu(gate - step, up)) / (2 * step);
    CHECK(y[i] == Approx(swiglu(gate, up)).epsilon(1e-5).margin(1e-6));
    CHECK(gradient[GateColumn(i)] == Approx(slope * y_grad[i]).epsilon(1e-4).margin(1e-5));
    CHECK(gradient[GateColumn(i) + kSwiGluBlock] ==
          Approx(swiglu(gate, 1) * y_grad[i]).epsilon(1e-5).margin(1e-6));
  }
}

}  // namespace
}  // namespace warpsmith
