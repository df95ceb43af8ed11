#include "core/kernels/swiglu_cuda.h"

#include "tests/gpu/device_rate.h"
#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("SwiGLU on the device equals the CPU's") {
  for (const int64_t rows : {1, 3, 257}) {
    for (const int64_t size : {16, 48, 1008, 14336}) {
      INFO(rows << " x " << size);
      std::vector<float> gate_up = RandomBfloat16s(rows * 2 * size, 1);
      // To where exp overflows and underflows.
      for (float& value : gate_up) value = RoundToBfloat16(value * 100);
      std::vector<float> expected(rows * size);
      SwiGluReference({rows, size, gate_up.data(), expected.data()});
      const Bfloat16Array input(gate_up), y(std::vector<float>(rows * size));
      REQUIRE(LaunchSwiGlu({rows, size, input.get(), y.get()}, nullptr) == cudaSuccess);
      CHECK(LargestError(y.Read(), expected) <= 1.0);  // exp differs in its last places
    }
  }
}

TEST_CASE("SwiGLU refuses a size that is not whole blocks") {
  CHECK(LaunchSwiGlu({1, 24}, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchSwiGlu({0, 16}, nullptr) == cudaSuccess);
}

TEST_CASE("the rate of SwiGLU at 64 and at 4,096 rows of 12,288 columns") {
  constexpr int64_t kSize = 12288;
  for (const int64_t rows : {64, 4096}) {
    const Bfloat16Array gate_up(RandomBfloat16s(rows * 2 * kSize, 1)), y(std::vector<float>(rows * kSize));
    PrintRate(rows == 64 ? "SwiGLU, 64 rows" : "SwiGLU, 4096 rows", 3 * rows * kSize * sizeof(uint16_t), [&] {
      return LaunchSwiGlu({rows, kSize, gate_up.get(), y.get()}, nullptr);
    });
  }
}

}  // namespace
}  // namespace warpsmith
