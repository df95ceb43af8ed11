#include "reward_service/referee/tensors/comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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

template <typename Stored>
double ToDouble(Stored value) {
  if constexpr (std::is_class_v<Stored>) return static_cast<float>(value);
  return static_cast<double>(value);
}

// How far an element is off, and how far it may be.
struct Deviation {
  double error;
  double margin;
  bool counts;  // in the mean of squares

  double share() const { return std::min(1.0, error / margin); }
};

template <typename Stored>
Deviation DeviationOf(const Tolerance& t, const ExpectedBytes& expected, const Stored* actual, int64_t i) {
  const Stored stored = static_cast<const Stored*>(expected.elements)[i];
  double e = ToDouble(stored);
  Deviation found{.error = 0, .margin = t.absolute + t.relative * std::fabs(e), .counts = false};
  if (expected.margins != nullptr) {
    const uint32_t word = expected.margins[i];
    found.margin = static_cast<double>(std::bit_cast<float>(word & 0x7FFF0000u));
    found.counts = word >> 31 == 0;
    e += static_cast<int16_t>(word & 0xFFFFu) * kResidual * found.margin;
  }
  const double c = ToDouble(actual[i]);
  if constexpr (std::is_integral_v<Stored>) {
    if (actual[i] != stored) found.error = std::max(1.0, std::fabs(c - e));  // of 64 bits, too
  } else if (c != e) {
    found.error = std::fabs(c - e);
    if (!std::isfinite(found.error)) found.error = std::numeric_limits<double>::infinity();
  }
  return found;
}

template <typename Stored>
std::string Text(Stored value, int digits) {
  if constexpr (std::is_integral_v<Stored>) return absl::StrCat(int64_t{value});
  return absl::StrFormat("%.*g", digits, ToDouble(value));
}

template <typename Stored>
Comparison CompareAll(const TensorSpec& spec, const Tolerance& t, const ExpectedBytes& expected,
                      const Stored* actual) {
  Comparison result;
  result.num_elements = spec.num_elements;
  int64_t num_outliers = 0, num_squares = 0;
  double outlier_error = 0, squares = 0;
  for (int64_t i = 0; i < spec.num_elements; ++i) {
    const Deviation found = DeviationOf(t, expected, actual, i);
    const double share = found.counts ? found.share() : 0;
    squares += share * share;
    num_squares += found.counts ? 1 : 0;
    if (std::isfinite(found.error))
      result.max_absolute_error = std::max(result.max_absolute_error, found.error);
    if (found.error <= t.reach * found.margin) continue;
    if (++num_outliers == 1) result.first_outlier = i;
    outlier_error = std::max(outlier_error, found.error);
  }
  if (!IsWrong(t, num_outliers, outlier_error, squares, num_squares)) return result;
  for (int64_t i = 0; i < spec.num_elements; ++i) {
    const Deviation found = DeviationOf(t, expected, actual, i);
    const bool wrong = num_outliers > 0 ? !(found.error <= t.reach * found.margin)
                                        : found.counts && found.share() * found.share() > t.bulk_max;
    if (!wrong) continue;
    ++result.num_wrong;
    const bool unwritten = !std::is_integral_v<Stored> && IsPoison(actual[i]);
    result.num_unwritten += unwritten ? 1 : 0;
    result.num_non_finite += !unwritten && !std::isfinite(ToDouble(actual[i])) ? 1 : 0;
    if (result.num_wrong > 1) continue;
    const auto* const elements = static_cast<const Stored*>(expected.elements);
    result.first_difference = DescribeDifference(spec, i, elements + i, actual + i);
  }
  return result;
}

// Calls `use` with a pointer to the type of the output's elements.
template <typename Use>
auto WithType(const TensorSpec& spec, const Use& use) {
  constexpr int kBrainFloat = 4, kFloat = 2;  // DLDataTypeCode
  if (spec.code == kBrainFloat) return use(static_cast<BrainHalf*>(nullptr));
  const bool is_real = spec.code == kFloat;
  if (spec.bits == 64)
    return is_real ? use(static_cast<double*>(nullptr)) : use(static_cast<int64_t*>(nullptr));
  if (spec.bits == 32)
    return is_real ? use(static_cast<float*>(nullptr)) : use(static_cast<int32_t*>(nullptr));
  if (spec.bits == 16)
    return is_real ? use(static_cast<Half*>(nullptr)) : use(static_cast<int16_t*>(nullptr));
  return spec.code == 0 ? use(static_cast<int8_t*>(nullptr)) : use(static_cast<uint8_t*>(nullptr));
}

}  // namespace

unsigned char PoisonByteOf(const TensorSpec& spec, uint64_t lot) {
  constexpr int kFloat = 2, kBrainFloat = 4;  // DLDataTypeCode
  if (spec.code == kFloat || spec.code == kBrainFloat) return kPoisonByte;
  constexpr unsigned kLeast = 0x80, kGreatest = 0xFE;
  return static_cast<unsigned char>(kLeast + lot % (kGreatest - kLeast + 1));
}

bool IsWrong(const Tolerance& t, int64_t num_outliers, double outlier_error, double squares,
             int64_t num_squares) {
  if (num_outliers > t.outliers_max || outlier_error > t.outlier_error_max) return true;
  return squares > t.bulk_max * static_cast<double>(num_squares);
}

Comparison Compare(const TensorSpec& spec, const Tolerance& tolerance, const ExpectedBytes& expected,
                   const void* actual) {
  return WithType(spec, [&](auto* type) {
    return CompareAll(spec, tolerance, expected,
                      static_cast<const std::remove_pointer_t<decltype(type)>*>(actual));
  });
}

std::string DescribeDifference(const TensorSpec& spec, int64_t index, const void* expected,
                               const void* actual) {
  return WithType(spec, [&](auto* type) {
    using Stored = std::remove_pointer_t<decltype(type)>;
    const Stored& wanted = *static_cast<const Stored*>(expected);
    const Stored& got = *static_cast<const Stored*>(actual);
    const bool unwritten = !std::is_integral_v<Stored> && IsPoison(got);
    const int digits = Text(got, 6) == Text(wanted, 6) ? 17 : 6;
    return absl::StrCat(IndexName(spec.shape, index), ": ", unwritten ? "never written" : Text(got, digits),
                        ", expected ", Text(wanted, digits));
  });
}

}  // namespace warpsmith
