// Values in device memory by what they are stored in, bfloat16, float16 or float32, for kernels that are written once
// for all.
#ifndef WARPSMITH_CORE_KERNELS_STORED_VECTORS_CUH_
#define WARPSMITH_CORE_KERNELS_STORED_VECTORS_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "core/kernels/stored_pair.cuh"

namespace warpsmith {

// Values that a thread takes at a time: 16 bytes, the widest load of a thread, or 32 of float32.
inline constexpr int kStoredVector = 8;

// As stored, for what waits in registers. One word of 16 bytes: nvcc copies an array of pairs in four loads and four
// stores.
template <typename T>
struct StoredVector {
  uint4 bits;

  __device__ uint32_t Pair(int i) const {
    return i < 2 ? (i == 0 ? bits.x : bits.y) : (i == 2 ? bits.z : bits.w);
  }
};
template <>
struct alignas(16) StoredVector<float> {
  float values[kStoredVector];
};

template <typename T>
__device__ inline void Unpack(const StoredVector<T>& vector, float (&values)[kStoredVector]) {
#pragma unroll
  for (int i = 0; i < kStoredVector / 2; ++i) {
    const float2 pair = WidenedPair<T>(vector.Pair(i));
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
}
template <>
__device__ inline void Unpack(const StoredVector<float>& vector, float (&values)[kStoredVector]) {
#pragma unroll
  for (int i = 0; i < kStoredVector; ++i) values[i] = vector.values[i];
}

// `from` is aligned to 16 bytes.
template <typename T>
__device__ inline void LoadVector(const T* from, float (&values)[kStoredVector]) {
  Unpack<T>(*reinterpret_cast<const StoredVector<T>*>(from), values);
}

// Rounds as NarrowedPair. `to` is aligned to 16 bytes.
template <typename T>
__device__ inline void StoreVector(const float (&values)[kStoredVector], T* to) {
  *reinterpret_cast<uint4*>(to) = {
      NarrowedPair<T>(values[0], values[1]), NarrowedPair<T>(values[2], values[3]),
      NarrowedPair<T>(values[4], values[5]), NarrowedPair<T>(values[6], values[7])};
}
__device__ inline void StoreVector(const float (&values)[kStoredVector], float* to) {
  StoredVector<float> vector;
#pragma unroll
  for (int i = 0; i < kStoredVector; ++i) vector.values[i] = values[i];
  *reinterpret_cast<StoredVector<float>*>(to) = vector;
}

__device__ inline float LoadStored(const __nv_bfloat16* from) { return __bfloat162float(*from); }
__device__ inline float LoadStored(const __half* from) { return __half2float(*from); }
__device__ inline float LoadStored(const float* from) { return *from; }

// As NarrowedPair rounds.
__device__ inline void StoreStored(float value, __nv_bfloat16* to) { *to = __float2bfloat16_rn(value); }
__device__ inline void StoreStored(float value, __half* to) { *to = __float2half_rn(value); }
__device__ inline void StoreStored(float value, float* to) { *to = value; }

// What comes back of a value that T stores.
template <typename T>
__device__ float RoundToStored(float value) {
  T stored;
  StoreStored(value, &stored);
  return LoadStored(&stored);
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_STORED_VECTORS_CUH_
