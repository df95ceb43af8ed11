// swiglu_gradient.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_SWIGLU_GRADIENT_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_SWIGLU_GRADIENT_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "core/kernels/training/swiglu_gradient.h"

namespace warpsmith {

// T is __nv_bfloat16 or float. All pointers are device memory, aligned to 16 bytes. Launches on `stream`, does not
// synchronise. Returns the launch's error, cudaErrorInvalidValue for a size that is not a positive multiple of
// kSwiGluBlock.
template <typename T>
cudaError_t LaunchSwiGluGradient(const SwiGluGradient<T>& gradient, cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_SWIGLU_GRADIENT_CUDA_H_
