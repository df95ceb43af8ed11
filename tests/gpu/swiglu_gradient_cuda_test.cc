#include "core/kernels/training/swiglu_gradient_cuda.h"

#include <vector>

#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEMPLATE_TEST_CASE("the gradient of SwiGLU on the device equals the CPU's", "", __nv_bfloat16, float) {
  for (const int64_t rows : {1, 257}) {
    for (const int64_t size : {16, 1008, 6144}) {
      INFO(rows << " x " << size);
      std::vector<float> gate_up = RandomStored<TestType>(rows * 2 * size, 1),
                         y_grad = RandomStored<TestType>(rows * size, 2), y(rows * size),
                         gate_up_grad(rows * 2 * size);
      for (float& value : gate_up) value *= 64;  // to where exp overflows and underflows
      const StoredArray<TestType> device_gate_up(gate_up), device_y_grad(y_grad);
      // Both results lie where what they are made of does.
      REQUIRE(LaunchSwiGluGradient<TestType>({rows, size, device_gate_up.get(), device_y_grad.get(),
                                              device_gate_up.get(), device_y_grad.get()},
                                             nullptr) == cudaSuccess);
      SwiGluGradientReference({rows, size, gate_up.data(), y_grad.data(), gate_up_grad.data(), y.data()},
                              kStoredDtype<TestType>);
      CHECK(Distance(device_gate_up.Read(), gate_up_grad) < kRounding<TestType>);
      CHECK(Distance(device_y_grad.Read(), y) < kRounding<TestType>);
    }
  }
  CHECK(LaunchSwiGluGradient<TestType>({1, 24}, nullptr) == cudaErrorInvalidValue);
}

}  // namespace
}  // namespace warpsmith
