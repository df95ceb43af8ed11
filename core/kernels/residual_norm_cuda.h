// residual_norm.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_RESIDUAL_NORM_CUDA_H_
#define WARPSMITH_CORE_KERNELS_RESIDUAL_NORM_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "core/kernels/kernel_start.h"
#include "core/kernels/residual_norm.h"

namespace warpsmith {

// T is __nv_bfloat16, __half or float. All pointers are device memory, aligned to 16 bytes where size is a multiple of
// 8. A row's result depends on that row alone. Launches on `stream`, does not synchronise; returns the launch's error,
// cudaErrorInvalidValue for a size or a number of deltas below 1. Constant beside the former kernel: the weight.
template <typename T = __nv_bfloat16>
cudaError_t LaunchResidualNorm(const ResidualNorm<T>& norm, cudaStream_t stream,
                               KernelStart start = KernelStart::kAfterFormer);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_RESIDUAL_NORM_CUDA_H_
