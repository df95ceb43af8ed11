#include "core/kernels/training/norm_gradient_cuda.h"

#include <vector>

#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEMPLATE_TEST_CASE("the gradient of a norm on the device equals the CPU's", "", __nv_bfloat16, float) {
  for (const int64_t rows : {1, 3, 700}) {
    for (const int64_t size : {64, 1032, 2048, 4096, 8192}) {
      INFO(rows << " x " << size);
      std::vector<float> x = RandomStored<TestType>(rows * size, 1), weight = RandomStored<TestType>(size, 2),
                         y_grad = RandomStored<TestType>(rows * size, 3),
                         x_grad = RandomStored<TestType>(rows * size, 4), weight_grad = RandomFloats(size, 5),
                         y(rows * size);
      const StoredArray<TestType> device_x(x), device_weight(weight), device_y_grad(y_grad),
          device_x_grad(x_grad);
      const DeviceArray parts(std::vector<float>(NumGradientParts(rows) * size)),
          device_weight_grad(weight_grad);
      // y lies where its gradient does.
      REQUIRE(LaunchNormGradient<TestType>(
                  {rows, size, 1e-6f, device_x.get(), device_weight.get(), device_y_grad.get(),
                   device_x_grad.get(), device_y_grad.get(), parts.get(), device_weight_grad.get()},
                  nullptr) == cudaSuccess);
      NormGradientReference({rows, size, 1e-6f, x.data(), weight.data(), y_grad.data(), x_grad.data(),
                             y.data(), nullptr, weight_grad.data()},
                            kStoredDtype<TestType>);
      CHECK(Distance(device_x_grad.Read(), x_grad) < kRounding<TestType>);
      CHECK(Distance(device_y_grad.Read(), y) < kRounding<TestType>);
      CHECK(Distance(device_weight_grad.Read(), weight_grad) < 1e-5);
    }
  }
  CHECK(LaunchNormGradient<TestType>({1, 12}, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchNormGradient<TestType>({1, 8200}, nullptr) == cudaErrorInvalidValue);
}

}  // namespace
}  // namespace warpsmith
