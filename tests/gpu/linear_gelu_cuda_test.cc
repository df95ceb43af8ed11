#include "core/kernels/linear_gelu_cuda.h"

#include <cmath>

#include "tests/gpu/device_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("the linear layer with its epilogue equals the reference") {
  cublasLtHandle_t handle;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  const DeviceArray workspace(std::vector<float>(8 << 20));
  for (const LinearGeluShape shape : {LinearGeluShape{1, 8, 8}, {33, 64, 40}, {129, 136, 1000}}) {
    const std::vector<float> x = RandomFloats(shape.rows * shape.depth, 1);
    const std::vector<float> weight = RandomFloats(shape.columns * shape.depth, 2);
    const std::vector<float> bias = RandomFloats(shape.columns, 3);
    const DeviceArray x_device(x), weight_device(weight), bias_device(bias);
    const DeviceArray y_device(std::vector<float>(shape.rows * shape.columns));
    INFO(shape.rows << " x " << shape.columns << " x " << shape.depth);
    REQUIRE(LaunchLinearGelu(handle, shape, x_device.get(), weight_device.get(), bias_device.get(),
                             y_device.get(), {workspace.get(), 32 << 20}, nullptr) == CUBLAS_STATUS_SUCCESS);
    const std::vector<float> y = y_device.Read();
    std::vector<double> expected(y.size());
    LinearGeluReference(shape, x.data(), weight.data(), bias.data(), expected.data());
    double largest = 0;
    for (size_t i = 0; i < y.size(); ++i) largest = std::max(largest, std::abs(y[i] - expected[i]));
    // A float32 sum of `depth` products below 1, and a few units in the last place of tanh.
    CHECK(largest < 1e-6 * std::sqrt(static_cast<double>(shape.depth)) + 1e-5);
  }
  cublasLtDestroy(handle);
}

}  // namespace
}  // namespace warpsmith
