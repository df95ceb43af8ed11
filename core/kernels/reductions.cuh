// Sums over a warp or a block in one fixed order, so that a row's result depends on that row alone.
#ifndef WARPSMITH_CORE_KERNELS_REDUCTIONS_CUH_
#define WARPSMITH_CORE_KERNELS_REDUCTIONS_CUH_

namespace warpsmith {

inline constexpr int kWarp = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffu;

// In every lane, by halves: additions commute, so all lanes have the same bits.
template <typename T>
__device__ T WarpSum(T value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kWholeWarp, value, offset);
  return value;
}

// In every thread of a block of `kThreads`, which all call it; warps in order. `partials` holds a value a warp,
// in shared memory.
template <int kThreads, typename T>
__device__ T BlockSum(T value, T* partials) {
  value = WarpSum(value);
  if (threadIdx.x % kWarp == 0) partials[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = 0;
  for (int warp = 0; warp < kThreads / kWarp; ++warp) value += partials[warp];
  __syncthreads();  // before the next call writes partials
  return value;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_REDUCTIONS_CUH_
