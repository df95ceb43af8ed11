// SwiGLU of one gate, for kernels that must give the same bits.
#ifndef WARPSMITH_CORE_KERNELS_SWIGLU_CUH_
#define WARPSMITH_CORE_KERNELS_SWIGLU_CUH_

#include <type_traits>

namespace warpsmith {

// Of values that are stored as T. What a fast exponential and quotient lose, some 2^-20 of the value, is little beside
// one rounding to 16 bits.
template <typename T>
__device__ inline float SwiGluOf(float gate, float up) {
  if constexpr (std::is_same_v<T, float>) return up * (gate / (1.0f + expf(-gate)));
  return up * __fdividef(gate, 1.0f + __expf(-gate));
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_SWIGLU_CUH_
