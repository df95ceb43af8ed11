// Two neighbours of bfloat16 or float16, in one word.
#ifndef WARPSMITH_CORE_KERNELS_STORED_PAIR_CUH_
#define WARPSMITH_CORE_KERNELS_STORED_PAIR_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace warpsmith {

// Rounded to the nearest, ties to even. What is too large for float16 becomes infinite.
template <typename T>
__device__ uint32_t NarrowedPair(float low, float high);
template <>
__device__ inline uint32_t NarrowedPair<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}
template <>
__device__ inline uint32_t NarrowedPair<__half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}

template <typename T>
__device__ float2 WidenedPair(uint32_t pair);
template <>
__device__ inline float2 WidenedPair<__nv_bfloat16>(uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}
template <>
__device__ inline float2 WidenedPair<__half>(uint32_t pair) {
  return __half22float2(reinterpret_cast<const __half2&>(pair));
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_STORED_PAIR_CUH_
