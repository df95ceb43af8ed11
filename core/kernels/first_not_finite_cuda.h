// Finds a value that is infinite or NaN in device memory.
#ifndef WARPSMITH_CORE_KERNELS_FIRST_NOT_FINITE_CUDA_H_
#define WARPSMITH_CORE_KERNELS_FIRST_NOT_FINITE_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace warpsmith {

// T is __nv_bfloat16, __half or float. Lowers *first, in device memory, to the smallest index of `values` [size] that
// is not finite, where that is smaller; a caller begins with UINT64_MAX. `values` is aligned to 16 bytes. Launches on
// `stream`, does not synchronise; returns the launch's error, cudaErrorInvalidValue for a size that is below 0 or no
// multiple of 16 bytes.
template <typename T = __nv_bfloat16>
cudaError_t LaunchFirstNotFinite(const T* values, int64_t size, unsigned long long* first,
                                 cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_FIRST_NOT_FINITE_CUDA_H_
