// Random values in device memory, to time kernels on: zeros draw less power than weights do, and run faster.
#ifndef WARPSMITH_CORE_KERNELS_RANDOM_NORMALS_CUDA_H_
#define WARPSMITH_CORE_KERNELS_RANDOM_NORMALS_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace warpsmith {

// T is __nv_bfloat16, __half or float. values[i], i < size: normal with `deviation` around 0, never 0 itself, a
// function of seed and i. Launches on `stream`, does not synchronise; returns the launch's error.
template <typename T>
cudaError_t LaunchRandomNormals(T* values, int64_t size, uint64_t seed, float deviation, cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_RANDOM_NORMALS_CUDA_H_
