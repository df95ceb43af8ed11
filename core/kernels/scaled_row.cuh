// A row of logits as its sample sees it, and the order in which truncation keeps its ids.
#ifndef WARPSMITH_CORE_KERNELS_SCALED_ROW_CUH_
#define WARPSMITH_CORE_KERNELS_SCALED_ROW_CUH_

#include <cstdint>

namespace warpsmith {

inline constexpr int kSamplingThreads = 512;
inline constexpr float kExponentMin = -87.0f;

struct ScaledRow {
  const float* logits;
  int64_t size;
  float inverse_temperature;
  float largest;  // logit

  __device__ float Shifted(float logit) const { return (logit - largest) * inverse_temperature; }
  // 1 for the largest logit.
  __device__ float WeightOf(float logit) const {
    const float shifted = Shifted(logit);
    return shifted < kExponentMin ? 0.0f : expf(shifted);
  }
  // 0 behind the end.
  __device__ float Weight(int64_t i) const { return i < size ? WeightOf(logits[i]) : 0.0f; }
};

// Descending keys are descending logits, and of equal logits ascending ids. No two ids have the same.
using OrderKey = unsigned long long;

__device__ inline OrderKey OrderKeyOf(float logit, int64_t id) {
  const unsigned bits = __float_as_uint(logit + 0.0f);  // -0 equals 0
  const unsigned ascending = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return OrderKey{ascending} << 32 | (0xffffffffu - static_cast<unsigned>(id));
}
__device__ inline float LogitOf(OrderKey key) {
  const auto ascending = static_cast<unsigned>(key >> 32);
  return __uint_as_float((ascending >> 31) != 0 ? ascending & 0x7fffffffu : ~ascending);
}
__device__ inline int32_t IdOf(OrderKey key) {
  return static_cast<int32_t>(0xffffffffu - static_cast<unsigned>(key));
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_SCALED_ROW_CUH_
