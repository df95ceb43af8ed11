// SwiGLU of one gate, for kernels that must give the same bits.
#ifndef WARPSMITH_CORE_KERNELS_SWIGLU_CUH_
#define WARPSMITH_CORE_KERNELS_SWIGLU_CUH_

namespace warpsmith {

__device__ inline float SwiGluOf(float gate, float up) { return up * (gate / (1.0f + expf(-gate))); }

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_SWIGLU_CUH_
