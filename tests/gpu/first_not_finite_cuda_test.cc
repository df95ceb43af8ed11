#include "core/kernels/first_not_finite_cuda.h"

#include <cmath>
#include <limits>

#include "tests/gpu/device_rate.h"
#include "tests/gpu/stored_array.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr unsigned long long kNone = std::numeric_limits<unsigned long long>::max();

unsigned long long FirstOf(const std::vector<float>& values) {
  const Bfloat16Array array(values);
  const DeviceVector<unsigned long long> first(std::vector<unsigned long long>{kNone});
  REQUIRE(LaunchFirstNotFinite(array.get(), std::ssize(values), first.get(), nullptr) == cudaSuccess);
  return first.Read()[0];
}

}  // namespace

TEST_CASE("the first of the values that are not finite is found, at every place") {
  for (const int64_t size : {8, 64, 5000 * 8}) {
    CHECK(FirstOf(RandomBfloat16s(size, 1)) == kNone);
    for (const int64_t at :
         {int64_t{0}, int64_t{1}, int64_t{6}, int64_t{7}, size / 2, size / 2 + 1, size - 1}) {
      for (const float bad : {INFINITY, -INFINITY, NAN}) {
        std::vector<float> values = RandomBfloat16s(size, 1);
        values[at] = values[size - 1] = bad;
        INFO(bad << " at " << at << " of " << size);
        CHECK(FirstOf(values) == static_cast<unsigned long long>(at));
      }
    }
  }
  CHECK(FirstOf({3.38e38f, -3.38e38f, 0, -0.0f, 1e-40f, 1, 2, 3}) == kNone);
}

TEST_CASE("sizes that are not of whole vectors are refused") {
  CHECK(LaunchFirstNotFinite<__nv_bfloat16>(nullptr, 4, nullptr, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchFirstNotFinite<__nv_bfloat16>(nullptr, -8, nullptr, nullptr) == cudaErrorInvalidValue);
  CHECK(LaunchFirstNotFinite<__nv_bfloat16>(nullptr, 0, nullptr, nullptr) == cudaSuccess);
}

TEST_CASE("the rate of looking for values that are not finite") {
  constexpr int64_t kSize = int64_t{256} << 20;
  const DeviceVector<uint16_t> values(std::vector<uint16_t>(kSize, 0x3F80));
  const DeviceVector<unsigned long long> first(std::vector<unsigned long long>{kNone});
  const auto* const bits = reinterpret_cast<const __nv_bfloat16*>(values.get());
  PrintRate("first not finite", kSize * 2,
            [&] { return LaunchFirstNotFinite(bits, kSize, first.get(), nullptr); });
}

}  // namespace warpsmith
