#include "core/kernels/rms_norm_cuda.h"

#include "core/kernels/kernel_set.h"
#include "tests/gpu/device_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("RMSNorm on the device equals the CPU's for odd sizes and in place") {
  for (const int64_t rows : {1, 3, 1000}) {
    for (const int64_t size : {1, 31, 257, 5120}) {
      const std::vector<float> x = RandomFloats(rows * size, 1), weight = RandomFloats(size, 2);
      const DeviceArray values(x), weights(weight);
      REQUIRE(LaunchRmsNorm(values.get(), weights.get(), rows, size, 1e-6f, values.get(), nullptr) ==
              cudaSuccess);
      const std::vector<float> y = values.Read();
      std::vector<float> expected(size);
      float largest = 0;
      for (int64_t r = 0; r < rows; ++r) {
        Kernels<float>().rms_norm(x.data() + r * size, weight.data(), size, 1e-6f, expected.data());
        for (int64_t i = 0; i < size; ++i)
          largest = std::max(largest, std::abs(y[r * size + i] - expected[i]));
      }
      INFO(rows << " x " << size);
      CHECK(largest < 4e-6f);  // values up to about 2; sums of squares in another order
    }
  }
}

TEST_CASE("RMSNorm refuses rows of nothing") {
  CHECK(LaunchRmsNorm(nullptr, nullptr, 1, 0, 1e-6f, nullptr, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchRmsNorm(nullptr, nullptr, 0, 8, 1e-6f, nullptr, nullptr) == cudaSuccess);
}

}  // namespace
}  // namespace warpsmith
