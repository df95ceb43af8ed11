// embedding_gradient.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_EMBEDDING_GRADIENT_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_EMBEDDING_GRADIENT_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "core/kernels/training/embedding_gradient.h"

namespace warpsmith {

// T is __nv_bfloat16 or float. All pointers are device memory, those of T and float aligned to 16 bytes. The same
// inputs give the same bits on every GPU. Launches on `stream`, does not synchronise. Returns the launch's error,
// cudaErrorInvalidValue for a size that is not a positive multiple of 8.
template <typename T>
cudaError_t LaunchEmbeddingGradient(const EmbeddingGradient<T>& gradient, cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_EMBEDDING_GRADIENT_CUDA_H_
