// bfloat16 arrays in device memory for tests, which see them as floats.
#ifndef WARPSMITH_TESTS_GPU_BFLOAT16_ARRAY_H_
#define WARPSMITH_TESTS_GPU_BFLOAT16_ARRAY_H_

#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "tests/gpu/device_array.h"

namespace warpsmith {

class Bfloat16Array {
 public:
  // Rounds the values.
  explicit Bfloat16Array(const std::vector<float>& values) : bits_(Rounded(values)) {}

  __nv_bfloat16* get() const { return reinterpret_cast<__nv_bfloat16*>(bits_.get()); }

  // Waits for the device.
  std::vector<float> Read() const {
    std::vector<float> values;
    for (const uint16_t bits : bits_.Read()) values.push_back(FloatOfBfloat16(bits));
    return values;
  }

 private:
  static std::vector<uint16_t> Rounded(const std::vector<float>& values) {
    std::vector<uint16_t> bits;
    bits.reserve(values.size());
    for (const float value : values) bits.push_back(Bfloat16Bits(value));
    return bits;
  }

  DeviceVector<uint16_t> bits_;
};

// Uniform in [-1, 1), rounded to what bfloat16 has.
inline std::vector<float> RandomBfloat16s(int64_t size, uint64_t seed) {
  std::vector<float> values = RandomFloats(size, seed);
  for (float& value : values) value = RoundToBfloat16(value);
  return values;
}

// The largest distance in units of what rounding to bfloat16 allows: 1 is a step of bfloat16 (2^-7 of the value), which
// float32 results on the two sides of a tie are apart, plus 1e-5 for float32 sums that cancel. NaN gives infinity.
inline double LargestError(const std::vector<float>& found, const std::vector<float>& expected) {
  double largest = found.size() == expected.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const double allowed = std::abs(expected[i]) * 0x1p-7 + 1e-5;
    const double error = std::abs(double{found[i]} - expected[i]) / allowed;
    largest = error <= largest ? largest : (std::isnan(error) ? INFINITY : error);
  }
  return largest;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_GPU_BFLOAT16_ARRAY_H_
