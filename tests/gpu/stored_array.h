// Arrays of bfloat16, float16 or float32 in device memory for tests, which see them as floats.
#ifndef WARPSMITH_TESTS_GPU_STORED_ARRAY_H_
#define WARPSMITH_TESTS_GPU_STORED_ARRAY_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "core/kernels/device_dtype.h"
#include "tests/gpu/device_array.h"

namespace warpsmith {

// Of T, __nv_bfloat16, __half or float: half a step between two values of it is at most this part of the larger. Of
// float32 half of eight steps, for sums are made in float32, too.
template <typename T>
inline constexpr double kHalfStep = 0x1p-8;
template <>
inline constexpr double kHalfStep<__half> = 0x1p-11;
template <>
inline constexpr double kHalfStep<float> = 0x1p-21;

template <typename T>
inline constexpr DeviceDtype kStoredDtype = DeviceDtype::kBfloat16;
template <>
inline constexpr DeviceDtype kStoredDtype<__half> = DeviceDtype::kFloat16;
template <>
inline constexpr DeviceDtype kStoredDtype<float> = DeviceDtype::kFloat32;

template <typename T>
class StoredArray {
 public:
  // Rounds the values.
  explicit StoredArray(const std::vector<float>& values) : bits_(Rounded(values)) {}

  T* get() const { return reinterpret_cast<T*>(bits_.get()); }

  // Waits for the device.
  std::vector<float> Read() const {
    std::vector<float> values;
    for (const uint16_t bits : bits_.Read()) {
      values.push_back(std::is_same_v<T, __half> ? FloatOfFloat16(bits) : FloatOfBfloat16(bits));
    }
    return values;
  }

 private:
  static std::vector<uint16_t> Rounded(const std::vector<float>& values) {
    std::vector<uint16_t> bits;
    bits.reserve(values.size());
    for (const float value : values) {
      bits.push_back(std::is_same_v<T, __half> ? Float16Bits(value) : Bfloat16Bits(value));
    }
    return bits;
  }

  DeviceVector<uint16_t> bits_;
};
using Bfloat16Array = StoredArray<__nv_bfloat16>;

template <>
class StoredArray<float> : public DeviceArray {
  using DeviceArray::DeviceArray;
};

// Uniform in [-1, 1), rounded to what T has.
template <typename T>
std::vector<float> RandomStored(int64_t size, uint64_t seed) {
  std::vector<float> values = RandomFloats(size, seed);
  for (float& value : values) value = RoundToDtype(value, kStoredDtype<T>);
  return values;
}
inline std::vector<float> RandomBfloat16s(int64_t size, uint64_t seed) {
  return RandomStored<__nv_bfloat16>(size, seed);
}

// The largest distance in units of what rounding to T allows: 1 is a step of T, which float32 results on the two sides
// of a tie are apart, or eight of float32, plus 1e-5 for float32 sums that cancel, in float32 1e-6. NaN gives infinity.
template <typename T = __nv_bfloat16>
double LargestError(const std::vector<float>& found, const std::vector<float>& expected) {
  double largest = found.size() == expected.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const double sum_error = std::is_same_v<T, float> ? 1e-6 : 1e-5;
    const double allowed = std::abs(double{expected[i]}) * 2 * kHalfStep<T> + sum_error;
    const double error = std::abs(double{found[i]} - expected[i]) / allowed;
    largest = error <= largest ? largest : (std::isnan(error) ? INFINITY : error);
  }
  return largest;
}

// |found - expected| / |expected|, of whole arrays. NaN and another size give infinity.
inline double Distance(const std::vector<float>& found, const std::vector<float>& expected) {
  double difference = found.size() == expected.size() ? 0 : INFINITY, size = 0;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    difference += std::pow(double{found[i]} - expected[i], 2);
    size += std::pow(double{expected[i]}, 2);
  }
  const double distance = std::sqrt(difference / size);
  return std::isnan(distance) ? INFINITY : distance;
}

// Above the Distance that rounding to T once leaves, and sums in float32.
template <typename T>
inline constexpr double kRounding = 2 * kHalfStep<T>;

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_GPU_STORED_ARRAY_H_
