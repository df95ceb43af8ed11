// bfloat16 in device memory, eight at a time: 16 bytes, the widest load of a thread.
#ifndef WARPSMITH_CORE_KERNELS_BFLOAT16_VECTORS_CUH_
#define WARPSMITH_CORE_KERNELS_BFLOAT16_VECTORS_CUH_

#include <cuda_bf16.h>

#include <cstdint>

namespace warpsmith {

inline constexpr int kBfloat16Vector = 8;

struct alignas(16) Bfloat16Vector {
  __nv_bfloat162 pairs[kBfloat16Vector / 2];
};

// `from` is aligned to 16 bytes.
__device__ inline void LoadVector(const __nv_bfloat16* from, float (&values)[kBfloat16Vector]) {
  const Bfloat16Vector vector = *reinterpret_cast<const Bfloat16Vector*>(from);
#pragma unroll
  for (int i = 0; i < kBfloat16Vector / 2; ++i) {
    const float2 pair = __bfloat1622float2(vector.pairs[i]);
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
}

// Rounds to the nearest, ties to even. `to` is aligned to 16 bytes.
__device__ inline void StoreVector(const float (&values)[kBfloat16Vector], __nv_bfloat16* to) {
  Bfloat16Vector vector;
#pragma unroll
  for (int i = 0; i < kBfloat16Vector / 2; ++i) {
    vector.pairs[i] = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
  }
  *reinterpret_cast<Bfloat16Vector*>(to) = vector;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_BFLOAT16_VECTORS_CUH_
