#include "core/kernels/training/adamw_cuda.h"

#include <vector>

#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEMPLATE_TEST_CASE("AdamW on the device equals the CPU's, stores what it made and clears the gradient", "",
                   __nv_bfloat16, float) {
  for (const int64_t size : {8, 100008}) {
    std::vector<float> gradient = RandomFloats(size, 1), parameter = RandomFloats(size, 2),
                       first = RandomFloats(size, 3), second = RandomFloats(size, 4);
    for (float& value : second) value *= value;
    const DeviceArray device_gradient(gradient), device_parameter(parameter), device_first(first),
        device_second(second);
    const StoredArray<TestType> stored((std::vector<float>(size)));
    const AdamWOptions options{.weight_decay = 0.1f, .gradient_scale = 0.25f, .step = 3};
    REQUIRE(LaunchAdamW<TestType>({options, size, device_gradient.get(), device_parameter.get(),
                                   device_first.get(), device_second.get(), stored.get()},
                                  nullptr) == cudaSuccess);
    AdamWStep(options, size, gradient.data(), parameter.data(), first.data(), second.data(), nullptr);
    CHECK(Distance(device_parameter.Read(), parameter) < 1e-6);
    CHECK(Distance(device_first.Read(), first) < 1e-6);
    CHECK(Distance(device_second.Read(), second) < 1e-6);
    CHECK(device_gradient.Read() == std::vector<float>(size));
    std::vector<float> rounded = device_parameter.Read();
    for (float& value : rounded) value = RoundToDtype(value, kStoredDtype<TestType>);
    CHECK(stored.Read() == rounded);
  }
}

TEST_CASE("a sum of squares on the device is that of float64, added to what was there") {
  const std::vector<float> values = RandomFloats(1'000'003, 1);
  const DeviceArray device_values(values);
  const DeviceVector<double> sum(std::vector<double>{2.0}), parts((std::vector<double>(kSquareParts)));
  REQUIRE(LaunchSumOfSquares(device_values.get(), 1'000'003, parts.get(), sum.get(), nullptr) == cudaSuccess);
  double expected = 2.0;
  for (const float value : values) expected += double{value} * value;
  CHECK(sum.Read()[0] == Approx(expected).epsilon(1e-12));
}

}  // namespace
}  // namespace warpsmith
