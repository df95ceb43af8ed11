// paged_attention.h on a GPU in float32, by one plain kernel: to show what the others compute, not to be fast.
#ifndef WARPSMITH_CORE_KERNELS_FLOAT32_ATTENTION_CUDA_H_
#define WARPSMITH_CORE_KERNELS_FLOAT32_ATTENTION_CUDA_H_

#include <cuda_runtime_api.h>

#include "core/kernels/kernel_start.h"
#include "core/kernels/paged_attention.h"
#include "core/kernels/paged_attention_cuda.h"

namespace warpsmith {

// As LaunchPagedAttention, without a workspace: a row's bits depend on its query vectors, its position and the entries
// up to it alone. All pointers are device memory, those of float32 aligned to 16 bytes. A block a row and query head:
// where `bounds` say that every query decodes, row r is query r, and row_indptr is not read. Launches on `stream`, does
// not synchronise; returns the launch's error, cudaErrorInvalidValue for what is not built: head_dim 64 and 128.
cudaError_t LaunchFloat32Attention(const PagedAttention<float>& attention, const PagedAttentionBounds& bounds,
                                   cudaStream_t stream, KernelStart start = KernelStart::kAfterFormer);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_FLOAT32_ATTENTION_CUDA_H_
