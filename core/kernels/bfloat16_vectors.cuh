// bfloat16 in device memory, eight at a time: 16 bytes, the widest load of a thread.
#ifndef WARPSMITH_CORE_KERNELS_BFLOAT16_VECTORS_CUH_
#define WARPSMITH_CORE_KERNELS_BFLOAT16_VECTORS_CUH_

#include <cuda_bf16.h>

#include <cstdint>

namespace warpsmith {

inline constexpr int kBfloat16Vector = 8;

// The bits of eight, as one word of 16 bytes: nvcc copies an array of __nv_bfloat162 in four loads and four stores.
struct Bfloat16Vector {
  uint4 bits;

  __device__ float2 Pair(int i) const {
    const unsigned pair = i < 2 ? (i == 0 ? bits.x : bits.y) : (i == 2 ? bits.z : bits.w);
    return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
  }
};

// The bits of two, rounded to the nearest, ties to even.
__device__ inline unsigned Bfloat16Pair(float first, float second) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return reinterpret_cast<const unsigned&>(pair);
}

// `from` is aligned to 16 bytes.
__device__ inline void LoadVector(const __nv_bfloat16* from, float (&values)[kBfloat16Vector]) {
  const Bfloat16Vector vector = *reinterpret_cast<const Bfloat16Vector*>(from);
#pragma unroll
  for (int i = 0; i < kBfloat16Vector / 2; ++i) {
    const float2 pair = vector.Pair(i);
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
}

// Rounds as Bfloat16Pair. `to` is aligned to 16 bytes.
__device__ inline void StoreVector(const float (&values)[kBfloat16Vector], __nv_bfloat16* to) {
  *reinterpret_cast<uint4*>(to) = {Bfloat16Pair(values[0], values[1]), Bfloat16Pair(values[2], values[3]),
                                   Bfloat16Pair(values[4], values[5]), Bfloat16Pair(values[6], values[7])};
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_BFLOAT16_VECTORS_CUH_
