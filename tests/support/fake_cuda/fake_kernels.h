// What the referee's own kernels do, as loops.
#ifndef WARPSMITH_TESTS_SUPPORT_FAKE_CUDA_FAKE_KERNELS_H_
#define WARPSMITH_TESTS_SUPPORT_FAKE_CUDA_FAKE_KERNELS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
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
  const auto* const actual = static_cast<const Element*>(Pointer(Argument<Address>(arguments, 1)));
  const auto absolute = Argument<double>(arguments, 3), relative = Argument<double>(arguments, 4);
  const auto rounding = Argument<double>(arguments, 5), centre = Argument<double>(arguments, 6);
  auto* const found = static_cast<Differences*>(Pointer(Argument<Address>(arguments, 7)));
  for (int64_t i = 0; i < Argument<int64_t>(arguments, 2); ++i) {
    const auto e = static_cast<double>(expected[i]), c = static_cast<double>(actual[i]);
    const double error = std::fabs(c - e);
    const bool right = error <= absolute + relative * std::fabs(e - centre) + rounding * std::fabs(e);
    if (!right) {
      const int64_t from_here = Argument<int64_t>(arguments, 2) - i;
      const auto* const bytes = reinterpret_cast<const unsigned char*>(&actual[i]);
      const bool all =
          std::all_of(bytes, bytes + sizeof(Element), [](unsigned char byte) { return byte == 0xFF; });
      ++found->num_wrong;
      found->num_all_bits += all ? 1 : 0;
      found->num_non_finite += !all && !std::isfinite(c) ? 1 : 0;
      found->num_from_first_wrong = std::max(found->num_from_first_wrong, from_here);
    }
    if (std::isfinite(error)) found->max_absolute_error = std::max(found->max_absolute_error, error);
  }
}

template <typename Element>
void CountOthers(void** arguments) {
  const auto* const expected = static_cast<const Element*>(Pointer(Argument<Address>(arguments, 0)));
  const auto* const actual = static_cast<const Element*>(Pointer(Argument<Address>(arguments, 1)));
  auto* const found = static_cast<Differences*>(Pointer(Argument<Address>(arguments, 7)));
  for (int64_t i = 0; i < Argument<int64_t>(arguments, 2); ++i)
    found->num_wrong += expected[i] == actual[i] ? 0 : 1;
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
