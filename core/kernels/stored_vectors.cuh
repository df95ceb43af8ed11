// Values in device memory by what they are stored in, bfloat16 or float32, for kernels that are written once for both.
#ifndef WARPSMITH_CORE_KERNELS_STORED_VECTORS_CUH_
#define WARPSMITH_CORE_KERNELS_STORED_VECTORS_CUH_

#include "core/kernels/bfloat16_vectors.cuh"

namespace warpsmith {

// Values that a thread takes at a time, of either: 16 bytes of bfloat16, 32 of float32.
inline constexpr int kStoredVector = kBfloat16Vector;

// As stored, for what waits in registers.
struct alignas(16) Float32Vector {
  float values[kStoredVector];
};
template <typename T>
struct StoredVectorOf;
template <>
struct StoredVectorOf<__nv_bfloat16> {
  using Type = Bfloat16Vector;
};
template <>
struct StoredVectorOf<float> {
  using Type = Float32Vector;
};
template <typename T>
using StoredVector = typename StoredVectorOf<T>::Type;

__device__ inline void Unpack(const Bfloat16Vector& vector, float (&values)[kStoredVector]) {
#pragma unroll
  for (int i = 0; i < kStoredVector / 2; ++i) {
    const float2 pair = vector.Pair(i);
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
}
__device__ inline void Unpack(const Float32Vector& vector, float (&values)[kStoredVector]) {
#pragma unroll
  for (int i = 0; i < kStoredVector; ++i) values[i] = vector.values[i];
}

// As those of bfloat16_vectors.cuh.
__device__ inline void LoadVector(const float* from, float (&values)[kStoredVector]) {
  Unpack(*reinterpret_cast<const Float32Vector*>(from), values);
}
__device__ inline void StoreVector(const float (&values)[kStoredVector], float* to) {
  Float32Vector vector;
#pragma unroll
  for (int i = 0; i < kStoredVector; ++i) vector.values[i] = values[i];
  *reinterpret_cast<Float32Vector*>(to) = vector;
}

__device__ inline float LoadStored(const __nv_bfloat16* from) { return __bfloat162float(*from); }
__device__ inline float LoadStored(const float* from) { return *from; }

// To the nearest, ties to even.
__device__ inline void StoreStored(float value, __nv_bfloat16* to) { *to = __float2bfloat16_rn(value); }
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
