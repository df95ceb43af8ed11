// A row of logits as its sample sees it, how it is read, and the order in which truncation keeps its ids.
#ifndef WARPSMITH_CORE_KERNELS_SCALED_ROW_CUH_
#define WARPSMITH_CORE_KERNELS_SCALED_ROW_CUH_

#include <cfloat>
#include <cstdint>

#include "core/kernels/reductions.cuh"
#include "core/kernels/token_sampling.h"

namespace warpsmith {

inline constexpr int kSamplingThreads = 512;
inline constexpr int kSamplingWarps = kSamplingThreads / kWarp;
inline constexpr float kExponentMin = -87.0f;

struct ScaledRow {
  const float* logits;
  int64_t size;
  float inverse_temperature;  // finite
  float largest;              // logit

  __device__ float Shifted(float logit) const { return (logit - largest) * inverse_temperature; }
  // 1 for the largest logit.
  __device__ float WeightOf(float logit) const {
    const float shifted = Shifted(logit), weight = expf(shifted);  // a branch around it would take turns
    return shifted < kExponentMin ? 0.0f : weight;
  }
  __device__ float Weight(int64_t, float logit) const { return WeightOf(logit); }
};

// Finite, for infinity times the difference of two equal logits would be NaN.
__device__ inline float InverseOf(float temperature) {
  return temperature == 0.0f ? 1.0f : fminf(1.0f / temperature, FLT_MAX);
}

inline constexpr int kLogitsOfLane = kSamplingChunk / kWarp;

// A lane's logits of the chunk from `first`, in the order in which it adds their weights: IdOfLane says which they
// are. -infinity behind the end.
__device__ inline void LoadLogits(const float* logits, int64_t first, int64_t size,
                                  float (&values)[kLogitsOfLane]) {
  const int64_t id = first + threadIdx.x % kWarp * 4;
  if (first + kSamplingChunk <= size && reinterpret_cast<uintptr_t>(logits) % sizeof(float4) == 0) {
#pragma unroll
    for (int i = 0; i < kLogitsOfLane; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(logits + id + i * kWarp);
      values[i] = four.x, values[i + 1] = four.y, values[i + 2] = four.z, values[i + 3] = four.w;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kLogitsOfLane; ++i) {
    const int64_t own = id + i / 4 * kWarp * 4 + i % 4;
    values[i] = own < size ? logits[own] : -INFINITY;
  }
}

// The id of the lane's logit `i` of those from `first`.
__device__ inline int64_t IdOfLane(int64_t first, int i) {
  return first + i / 4 * kWarp * 4 + threadIdx.x % kWarp * 4 + i % 4;
}

// Ascending bits are ascending floats; -0 equals 0.
__device__ inline unsigned AscendingBits(float value) {
  const unsigned bits = __float_as_uint(value + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float OfAscendingBits(unsigned ascending) {
  return __uint_as_float((ascending >> 31) != 0 ? ascending & 0x7fffffffu : ~ascending);
}

// Descending keys are descending logits, and of equal logits ascending ids. No two ids have the same.
using OrderKey = unsigned long long;

__device__ inline OrderKey OrderKeyOf(float logit, int64_t id) {
  return OrderKey{AscendingBits(logit)} << 32 | (0xffffffffu - static_cast<unsigned>(id));
}
__device__ inline float LogitOf(OrderKey key) { return OfAscendingBits(static_cast<unsigned>(key >> 32)); }
__device__ inline int32_t IdOf(OrderKey key) {
  return static_cast<int32_t>(0xffffffffu - static_cast<unsigned>(key));
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_SCALED_ROW_CUH_
