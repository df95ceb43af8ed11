// embedding_gather.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_EMBEDDING_GATHER_CUDA_H_
#define WARPSMITH_CORE_KERNELS_EMBEDDING_GATHER_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "core/kernels/embedding_gather.h"
#include "core/kernels/kernel_start.h"

namespace warpsmith {

// T is __nv_bfloat16, __half or float. All pointers are device memory, those of T aligned to 16 bytes; size is a
// multiple of 8. Launches on `stream`, does not synchronise; returns the launch's error, cudaErrorInvalidValue for
// another size.
template <typename T = __nv_bfloat16>
cudaError_t LaunchEmbeddingGather(const EmbeddingGather<T>& gather, cudaStream_t stream,
                                  KernelStart start = KernelStart::kAfterFormer);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_EMBEDDING_GATHER_CUDA_H_
