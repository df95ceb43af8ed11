// 16-bit floating-point numbers as element types: stored as bits, computed with as float.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_HALF_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_HALF_H_

#include <cstdint>
#include <cstring>
#include <optional>

namespace warpsmith_facade {
namespace bits {

#if defined(__CUDACC__)
#define WARPSMITH_FACADE_BOTH __host__ __device__
#else
#define WARPSMITH_FACADE_BOTH
#endif

WARPSMITH_FACADE_BOTH inline uint32_t OfFloat(float value) {
  uint32_t result;
  memcpy(&result, &value, sizeof(result));
  return result;
}

WARPSMITH_FACADE_BOTH inline float ToFloat(uint32_t value) {
  float result;
  memcpy(&result, &value, sizeof(result));
  return result;
}

// IEEE 754 binary16, to nearest even.
WARPSMITH_FACADE_BOTH inline uint16_t HalfOf(float value) {
  const uint32_t word = OfFloat(value);
  const uint32_t sign = (word >> 16) & 0x8000u;
  const uint32_t magnitude = word & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);   // NaN
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 leaves the rounded mantissa in the low bits.
    const uint32_t sum = OfFloat(ToFloat(magnitude) + 0.5f);
    return static_cast<uint16_t>(sign | (sum - 0x3F000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
}

WARPSMITH_FACADE_BOTH inline float FloatOfHalf(uint16_t value) {
  const uint32_t sign = (value & 0x8000u) << 16;
  const uint32_t magnitude = value & 0x7FFFu;
  if (magnitude >= 0x7C00u) return ToFloat(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  if (magnitude >= 0x400u) return ToFloat(sign | ((magnitude << 13) + 0x38000000u));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return sign != 0 ? -subnormal : subnormal;
}

WARPSMITH_FACADE_BOTH inline uint16_t BFloat16Of(float value) {
  const uint32_t word = OfFloat(value);
  if ((word & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FC0u;
  return static_cast<uint16_t>((word + 0x7FFFu + ((word >> 16) & 1u)) >> 16);
}

WARPSMITH_FACADE_BOTH inline float FloatOfBFloat16(uint16_t value) {
  return ToFloat(static_cast<uint32_t>(value) << 16);
}

}  // namespace bits

#define WARPSMITH_FACADE_HALF_TYPE(name, encode, decode)                                        \
  struct alignas(2) name {                                                                      \
    uint16_t x;                                                                                 \
    name() = default;                                                                           \
    WARPSMITH_FACADE_BOTH name(float value) : x(encode(value)) {}                               \
    WARPSMITH_FACADE_BOTH operator float() const { return decode(x); }                          \
    WARPSMITH_FACADE_BOTH name& operator+=(float other) { return *this = name(*this + other); } \
    WARPSMITH_FACADE_BOTH name& operator-=(float other) { return *this = name(*this - other); } \
    WARPSMITH_FACADE_BOTH name& operator*=(float other) { return *this = name(*this * other); } \
    WARPSMITH_FACADE_BOTH name& operator/=(float other) { return *this = name(*this / other); } \
  };                                                                                            \
  WARPSMITH_FACADE_HALF_OPERATOR(name, +)                                                       \
  WARPSMITH_FACADE_HALF_OPERATOR(name, -)                                                       \
  WARPSMITH_FACADE_HALF_OPERATOR(name, *)                                                       \
  WARPSMITH_FACADE_HALF_OPERATOR(name, /)
// As Torch's: two of a kind, or one and an integer, round to the kind; with a float or double the result is
// theirs.
#define WARPSMITH_FACADE_HALF_OPERATOR(name, op)                                                          \
  WARPSMITH_FACADE_BOTH inline name operator op(name a, name b) { return float(a) op float(b); }          \
  WARPSMITH_FACADE_BOTH inline float operator op(name a, float b) { return float(a) op b; }               \
  WARPSMITH_FACADE_BOTH inline float operator op(float a, name b) { return a op float(b); }               \
  WARPSMITH_FACADE_BOTH inline double operator op(name a, double b) { return double(float(a)) op b; }     \
  WARPSMITH_FACADE_BOTH inline double operator op(double a, name b) { return a op double(float(b)); }     \
  WARPSMITH_FACADE_BOTH inline name operator op(name a, int b) { return float(a) op float(name(b)); }     \
  WARPSMITH_FACADE_BOTH inline name operator op(int a, name b) { return float(name(a)) op float(b); }     \
  WARPSMITH_FACADE_BOTH inline name operator op(name a, int64_t b) { return float(a) op float(name(b)); } \
  WARPSMITH_FACADE_BOTH inline name operator op(int64_t a, name b) { return float(name(a)) op float(b); }
WARPSMITH_FACADE_HALF_TYPE(Half, bits::HalfOf, bits::FloatOfHalf)
WARPSMITH_FACADE_HALF_TYPE(BFloat16, bits::BFloat16Of, bits::FloatOfBFloat16)
#undef WARPSMITH_FACADE_HALF_TYPE
#undef WARPSMITH_FACADE_HALF_OPERATOR

}  // namespace warpsmith_facade

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_HALF_H_
