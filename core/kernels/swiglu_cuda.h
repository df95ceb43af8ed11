// swiglu.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_SWIGLU_CUDA_H_
#define WARPSMITH_CORE_KERNELS_SWIGLU_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "core/kernels/kernel_start.h"
#include "core/kernels/swiglu.h"

namespace warpsmith {

// T is __nv_bfloat16, __half or float. All pointers are device memory, aligned to 16 bytes. Launches on `stream`, does
// not synchronise; returns the launch's error, cudaErrorInvalidValue for a size that is not a positive multiple of
// kSwiGluBlock.
template <typename T = __nv_bfloat16>
cudaError_t LaunchSwiGlu(const SwiGlu<T>& swiglu, cudaStream_t stream,
                         KernelStart start = KernelStart::kAfterFormer);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_SWIGLU_CUDA_H_
