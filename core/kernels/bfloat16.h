// bfloat16, the upper half of a float32, and float16, IEEE 754's half precision, on the host. For references and tests
// of what a device stores, and for weights on their way to it.
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

// Exactly. 2^112 moves the exponent from one bias to the other, and makes subnormals normal.
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

// As Bfloat16Bits. From 65,520 on it is infinite; below 2^-14 it has steps of 2^-24, which are those of float32 from
// 1/2 to 1.
inline uint16_t Float16Bits(float value) {
  constexpr uint32_t kInfinite = 0x477FF000, kNormal = 0x38800000, kHalf = 0x3F000000, kBias = 112u << 23;
  if (value != value) return 0x7FFF;
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = (bits >> 16) & 0x8000u;
  bits &= 0x7FFFFFFFu;
  if (bits >= kInfinite) return static_cast<uint16_t>(sign | 0x7C00u);
  if (bits >= kNormal)
    return static_cast<uint16_t>(sign | ((bits - kBias + 0xFFF + ((bits >> 13) & 1)) >> 13));
  float magnitude = 0;
  std::memcpy(&magnitude, &bits, sizeof(magnitude));
  magnitude += 0.5f;
  std::memcpy(&bits, &magnitude, sizeof(bits));
  return static_cast<uint16_t>(sign | (bits - kHalf));
}

// The float32 that comes back after storing.
inline float RoundToBfloat16(float value) { return FloatOfBfloat16(Bfloat16Bits(value)); }

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_BFLOAT16_H_
