#include "reward_service/referee/tensors/comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace warpsmith {
namespace {

// IEEE 754 binary16.
struct Half {
  uint16_t bits;
  operator float() const {  // NOLINT: stands for the built-in that the language lacks
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
    const uint32_t exponent = (bits >> 10) & 0x1Fu;
    const uint32_t mantissa = bits & 0x3FFu;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
      return sign != 0 ? -magnitude : magnitude;
    }
    const uint32_t wide_exponent = exponent == 31 ? 255 : exponent + 112;
    return std::bit_cast<float>(sign | (wide_exponent << 23) | (mantissa << 13));
  }
};

// The upper half of a binary32.
struct BrainHalf {
  uint16_t bits;
  operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }  // NOLINT: as Half
};

template <typename Value>
bool IsPoison(const Value& value) {
  unsigned char bytes[sizeof(Value)];
  std::memcpy(bytes, &value, sizeof(Value));
  return std::all_of(bytes, bytes + sizeof(Value), [](unsigned char byte) { return byte == kPoisonByte; });
}

// Element types and the type in which they are compared.
template <typename Stored, typename Real>
int64_t CountWrong(int64_t n, const Tolerance& t, const Stored* expected, const Stored* actual) {
  const Real absolute = static_cast<Real>(t.absolute);
  const Real relative = static_cast<Real>(t.relative);
  const Real rounding = static_cast<Real>(t.rounding);
  const Real centre = static_cast<Real>(t.centre);
  int64_t num_wrong = 0;
  constexpr int64_t kBlock = 1 << 14;  // a 32-bit counter vectorises better
  for (int64_t start = 0; start < n; start += kBlock) {
    int32_t wrong_in_block = 0;
    const int64_t end = std::min(n, start + kBlock);
    for (int64_t i = start; i < end; ++i) {
      const Real e = static_cast<Real>(expected[i]);
      const Real c = static_cast<Real>(actual[i]);
      const Real allowed = absolute + relative * std::fabs(e - centre) + rounding * std::fabs(e);
      wrong_in_block += std::fabs(c - e) <= allowed ? 0 : 1;  // a NaN is wrong
    }
    num_wrong += wrong_in_block;
  }
  return num_wrong;
}

template <typename Stored, typename Real>
std::string DescribeReal(const TensorSpec& spec, int64_t index, const Stored& expected,
                         const Stored& actual) {
  const auto text = [](const Stored& value) {
    return absl::StrCat(static_cast<double>(static_cast<Real>(value)));
  };
  return absl::StrCat(IndexName(spec.shape, index), ": ", IsPoison(actual) ? "never written" : text(actual),
                      ", expected ", text(expected));
}

template <typename Stored>
std::string DescribeInteger(const TensorSpec& spec, int64_t index, const Stored& expected,
                            const Stored& actual) {
  return absl::StrCat(IndexName(spec.shape, index), ": ", int64_t{actual}, ", expected ", int64_t{expected});
}

template <typename Stored, typename Real>
Comparison CompareReals(const TensorSpec& spec, const Tolerance& t, const Stored* expected,
                        const Stored* actual) {
  Comparison result;
  result.num_elements = spec.num_elements;
  const double scale[] = {t.absolute, t.relative, t.rounding};
  for (int64_t i = 0; i < spec.num_elements; ++i) {
    const double e = static_cast<double>(static_cast<Real>(expected[i]));
    const double c = static_cast<double>(static_cast<Real>(actual[i]));
    const double error = std::fabs(c - e);
    if (std::isfinite(error)) result.max_absolute_error = std::max(result.max_absolute_error, error);
    if (error <= scale[0] + scale[1] * std::fabs(e - t.centre) + scale[2] * std::fabs(e)) continue;
    ++result.num_wrong;
    const bool unwritten = IsPoison(actual[i]);
    result.num_unwritten += unwritten ? 1 : 0;
    result.num_non_finite += !unwritten && !std::isfinite(c) ? 1 : 0;
    if (result.num_wrong == 1) {
      result.first_difference = DescribeReal<Stored, Real>(spec, i, expected[i], actual[i]);
    }
  }
  return result;
}

template <typename Stored>
Comparison CompareIntegers(const TensorSpec& spec, const Stored* expected, const Stored* actual) {
  Comparison result;
  result.num_elements = spec.num_elements;
  for (int64_t i = 0; i < spec.num_elements; ++i) {
    if (expected[i] == actual[i]) continue;
    ++result.num_wrong;
    const double error = std::fabs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
    result.max_absolute_error = std::max(result.max_absolute_error, error);
    if (result.num_wrong == 1) {
      result.first_difference = DescribeInteger(spec, i, expected[i], actual[i]);
    }
  }
  return result;
}

template <typename Stored>
const Stored* As(const void* bytes) {
  return static_cast<const Stored*>(bytes);
}

}  // namespace

unsigned char PoisonByteOf(const TensorSpec& spec, uint64_t lot) {
  constexpr int kFloat = 2, kBrainFloat = 4;  // DLDataTypeCode
  if (spec.code == kFloat || spec.code == kBrainFloat) return kPoisonByte;
  constexpr unsigned kLeast = 0x80, kGreatest = 0xFE;
  return static_cast<unsigned char>(kLeast + lot % (kGreatest - kLeast + 1));
}

Comparison Compare(const TensorSpec& spec, const Tolerance& t, const void* expected, const void* actual) {
  if (spec.code == 2 && spec.bits == 32)
    return CompareReals<float, float>(spec, t, As<float>(expected), As<float>(actual));
  if (spec.code == 2 && spec.bits == 64) {
    return CompareReals<double, double>(spec, t, As<double>(expected), As<double>(actual));
  }
  if (spec.code == 2) return CompareReals<Half, float>(spec, t, As<Half>(expected), As<Half>(actual));
  if (spec.code == 4)
    return CompareReals<BrainHalf, float>(spec, t, As<BrainHalf>(expected), As<BrainHalf>(actual));
  switch (spec.bits) {
    case 64:
      return CompareIntegers(spec, As<int64_t>(expected), As<int64_t>(actual));
    case 32:
      return CompareIntegers(spec, As<int32_t>(expected), As<int32_t>(actual));
    case 16:
      return CompareIntegers(spec, As<int16_t>(expected), As<int16_t>(actual));
    default:
      return CompareIntegers(spec, As<uint8_t>(expected), As<uint8_t>(actual));
  }
}

std::string DescribeDifference(const TensorSpec& spec, int64_t index, const void* expected,
                               const void* actual) {
  if (spec.code == 2 && spec.bits == 32)
    return DescribeReal<float, float>(spec, index, *As<float>(expected), *As<float>(actual));
  if (spec.code == 2 && spec.bits == 64)
    return DescribeReal<double, double>(spec, index, *As<double>(expected), *As<double>(actual));
  if (spec.code == 2) return DescribeReal<Half, float>(spec, index, *As<Half>(expected), *As<Half>(actual));
  if (spec.code == 4)
    return DescribeReal<BrainHalf, float>(spec, index, *As<BrainHalf>(expected), *As<BrainHalf>(actual));
  switch (spec.bits) {
    case 64:
      return DescribeInteger(spec, index, *As<int64_t>(expected), *As<int64_t>(actual));
    case 32:
      return DescribeInteger(spec, index, *As<int32_t>(expected), *As<int32_t>(actual));
    case 16:
      return DescribeInteger(spec, index, *As<int16_t>(expected), *As<int16_t>(actual));
    default:
      return DescribeInteger(spec, index, *As<uint8_t>(expected), *As<uint8_t>(actual));
  }
}

bool AllRight(const TensorSpec& spec, const Tolerance& t, const void* expected, const void* actual) {
  const int64_t n = spec.num_elements;
  if (spec.code == 2 && spec.bits == 32) {
    return CountWrong<float, float>(n, t, As<float>(expected), As<float>(actual)) == 0;
  }
  if (spec.code == 2 && spec.bits == 64) {
    return CountWrong<double, double>(n, t, As<double>(expected), As<double>(actual)) == 0;
  }
  if (spec.code == 2) return CountWrong<Half, float>(n, t, As<Half>(expected), As<Half>(actual)) == 0;
  if (spec.code == 4)
    return CountWrong<BrainHalf, float>(n, t, As<BrainHalf>(expected), As<BrainHalf>(actual)) == 0;
  return std::memcmp(expected, actual, static_cast<size_t>(spec.num_bytes)) == 0;
}

}  // namespace warpsmith
