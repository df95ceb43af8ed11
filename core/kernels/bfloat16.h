// bfloat16 on the host: the upper half of a float32. For references and tests of what a device stores, and for weights
// on their way to it.
#ifndef WARPSMITH_CORE_KERNELS_BFLOAT16_H_
#define WARPSMITH_CORE_KERNELS_BFLOAT16_H_

#include <cstdint>
#include <cstring>

namespace warpsmith {

// To the nearest, ties to even, as a device's conversion does. A NaN becomes 0x7FFF, as there.
inline uint16_t Bfloat16Bits(float value) {
  if (value != value) return 0x7FFF;
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  bits += 0x7FFF + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}

inline float FloatOfBfloat16(uint16_t stored) {
  const uint32_t bits = uint32_t{stored} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Of IEEE half precision, exactly. 2^112 moves the exponent from one bias to the other, and makes subnormals normal.
inline float FloatOfFloat16(uint16_t half) {
  constexpr uint32_t kExponent = 0x7C00, kFloatExponent = 0x7F800000;
  uint32_t bits = uint32_t{half & 0x7FFFu} << 13;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  value *= 0x1p112f;
  std::memcpy(&bits, &value, sizeof(bits));
  bits |= (half & kExponent) == kExponent ? kFloatExponent : 0;
  bits |= uint32_t{half & 0x8000u} << 16;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// The float32 that comes back after storing.
inline float RoundToBfloat16(float value) { return FloatOfBfloat16(Bfloat16Bits(value)); }

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_BFLOAT16_H_
