#include "core/kernels/training/rounding_cuda.h"

#include <limits>
#include <vector>

#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("values on the device are rounded to bfloat16 as on the host, ties and infinities too") {
  for (const int64_t size : {1, 255, 1'000'003}) {
    std::vector<float> values = RandomFloats(size, 1);
    values[0] = 1.0f + 1.0f / 256;  // half-way: to the even one below
    if (size > 3) values[1] = std::numeric_limits<float>::infinity();
    if (size > 3) values[2] = 1.0f + 3.0f / 256;  // half-way: to the even one above
    const DeviceArray device_values(values);
    const StoredArray<__nv_bfloat16> rounded((std::vector<float>(size)));
    REQUIRE(LaunchRounding(device_values.get(), size, rounded.get(), nullptr) == cudaSuccess);
    for (float& value : values) value = RoundToDtype(value, kStoredDtype<__nv_bfloat16>);
    CHECK(rounded.Read() == values);
  }
}

}  // namespace
}  // namespace warpsmith
