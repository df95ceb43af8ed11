// What the referee's own kernels do, as loops.
#ifndef WARPSMITH_TESTS_SUPPORT_FAKE_CUDA_FAKE_KERNELS_H_
#define WARPSMITH_TESTS_SUPPORT_FAKE_CUDA_FAKE_KERNELS_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "reward_service/cuda/driver_api.h"
#include "reward_service/cuda/late_words.h"
#include "reward_service/cuda/tensor_kernels.h"

namespace warpsmith {

using cuda::Address, cuda::Differences;

inline constexpr cuda::Result kInvalid = 1;

inline void* Pointer(Address address) { return reinterpret_cast<void*>(address); }

template <typename Value>
Value Argument(void** arguments, int index) {
  return *static_cast<Value*>(arguments[index]);
}

template <typename Element>
void CompareElements(void** arguments) {
  const auto* const expected = static_cast<const Element*>(Pointer(Argument<Address>(arguments, 0)));
  const auto* const margins = static_cast<const uint32_t*>(Pointer(Argument<Address>(arguments, 1)));
  const auto* const actual = static_cast<const Element*>(Pointer(Argument<Address>(arguments, 2)));
  const auto count = Argument<int64_t>(arguments, 3);
  const auto absolute = Argument<double>(arguments, 4), relative = Argument<double>(arguments, 5);
  const auto reach = Argument<double>(arguments, 6);
  auto* const found = static_cast<Differences*>(Pointer(Argument<Address>(arguments, 7)));
  for (int64_t i = 0; i < count; ++i) {
    auto e = static_cast<double>(expected[i]);
    const auto c = static_cast<double>(actual[i]);
    double margin = absolute + relative * std::fabs(e);
    const uint32_t word = margins == nullptr ? 0x80000000 : margins[i];
    if (margins != nullptr) {
      margin = static_cast<double>(std::bit_cast<float>(word & 0x7FFF0000));
      e += static_cast<int16_t>(word & 0xFFFF) * 0x1p-18 * margin;
    }
    const double error = c == e ? 0 : std::fabs(c - e);
    if (word >> 31 == 0) {
      const double share = error < margin ? error / margin : 1;
      found->squares += share * share;
      ++found->num_squares;
    }
    if (!(error <= reach * margin)) {
      const auto* const bytes = reinterpret_cast<const unsigned char*>(&actual[i]);
      const bool all =
          std::all_of(bytes, bytes + sizeof(Element), [](unsigned char byte) { return byte == 0xFF; });
      ++found->num_outliers;
      found->num_all_bits += all ? 1 : 0;
      found->num_non_finite += !all && !std::isfinite(c) ? 1 : 0;
      found->num_from_first_outlier = std::max(found->num_from_first_outlier, count - i);
      found->outlier_error = std::max(found->outlier_error,
                                      std::isfinite(error) ? error : std::numeric_limits<double>::infinity());
    }
    if (std::isfinite(error)) found->max_absolute_error = std::max(found->max_absolute_error, error);
  }
}

template <typename Element>
void CountOthers(void** arguments) {
  const auto* const expected = static_cast<const Element*>(Pointer(Argument<Address>(arguments, 0)));
  const auto* const actual = static_cast<const Element*>(Pointer(Argument<Address>(arguments, 2)));
  auto* const found = static_cast<Differences*>(Pointer(Argument<Address>(arguments, 7)));
  for (int64_t i = 0; i < Argument<int64_t>(arguments, 3); ++i)
    found->num_outliers += expected[i] == actual[i] ? 0 : 1;
}

inline void GatherElements(void** arguments, int64_t num_bytes) {
  const auto* const from = static_cast<const char*>(Pointer(Argument<Address>(arguments, 0)));
  auto* const to = static_cast<char*>(Pointer(Argument<Address>(arguments, 1)));
  const auto extent = [&](int d) { return Argument<int64_t>(arguments, 2 + d); };
  const auto stride = [&](int d) { return Argument<int64_t>(arguments, 6 + d); };
  for (int64_t i = 0; i < Argument<int64_t>(arguments, 2); ++i) {
    int64_t rest = i, offset = 0;
    for (int d = 3; d > 0; rest /= extent(d), --d) offset += rest % extent(d) * stride(d);
    offset += rest * stride(0);
    std::copy_n(from + offset * num_bytes, num_bytes, to + i * num_bytes);
  }
}

// The kernel of reward_service/cuda/late_words.cc.
inline void PlaceWords(void** arguments) {
  const auto* const pairs =
      static_cast<const cuda::LateWords::Pair*>(Pointer(Argument<Address>(arguments, 0)));
  const bool in_copy = Argument<uint32_t>(arguments, 2) != 0;
  for (uint32_t i = 0; i < Argument<uint32_t>(arguments, 1); ++i) {
    const cuda::LateWords::Pair& pair = pairs[i];
    const uint64_t first = *static_cast<const uint64_t*>(Pointer(pair.first));
    const uint64_t second = *static_cast<const uint64_t*>(Pointer(pair.second));
    *static_cast<uint64_t*>(Pointer(in_copy ? pair.copy_of_first : pair.second)) = first;
    *static_cast<uint64_t*>(Pointer(in_copy ? pair.copy_of_second : pair.first)) = second;
  }
}

// The kernels of reward_service/cuda/; nothing for others.
inline cuda::Result Compare(const std::string& kernel, void** arguments) {
  if (kernel == "compare_single") CompareElements<float>(arguments);
  if (kernel == "compare_double") CompareElements<double>(arguments);
  if (kernel == "compare_words") CountOthers<int64_t>(arguments);
  if (kernel == "compare_bytes") CountOthers<uint8_t>(arguments);
  if (kernel.starts_with("gather_")) GatherElements(arguments, std::stoll(kernel.substr(7)));
  if (kernel == "place_words") PlaceWords(arguments);
  return kernel.find("half") == std::string::npos ? 0 : kInvalid;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_FAKE_CUDA_FAKE_KERNELS_H_
