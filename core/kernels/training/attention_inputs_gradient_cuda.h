// attention_inputs_gradient.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_ATTENTION_INPUTS_GRADIENT_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_ATTENTION_INPUTS_GRADIENT_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "core/kernels/training/attention_inputs_gradient.h"

namespace warpsmith {

// T is __nv_bfloat16 or float. All pointers are device memory, those of arrays aligned to 8 bytes; head_dim is a
// multiple of 4 and at most 256. The same inputs give the same bits on every GPU. Launches on `stream`, does not
// synchronise. Returns the launch's error, cudaErrorInvalidValue for other sizes.
template <typename T>
cudaError_t LaunchAttentionInputsGradient(const AttentionInputsGradient<T>& gradient, cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_ATTENTION_INPUTS_GRADIENT_CUDA_H_
