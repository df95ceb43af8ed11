// paged_attention.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_PAGED_ATTENTION_CUDA_H_
#define WARPSMITH_CORE_KERNELS_PAGED_ATTENTION_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstddef>

#include "core/kernels/kernel_start.h"
#include "core/kernels/paged_attention.h"

namespace warpsmith {

// Bounds of what is launched: grids and workspace depend on these and on the counts of `attention`, never on what its
// arrays hold, so that a captured graph can run again with other contents.
struct PagedAttentionBounds {
  int64_t rows_of_query_max = 1;   // 1: every query decodes, and row_indptr is not read
  int64_t context_tokens_max = 0;  // positions are below it
};

// The softmax of a row is summed over this many positions at a time, the first at 0, and the sums are merged in order.
// So a decoding sequence keeps several warps busy, and its bits are those that a chunk of a prompt has.
inline constexpr int kAttentionSplitTokens = 256;

// Bytes of workspace that LaunchPagedAttention wants for `rows` rows.
size_t PagedAttentionWorkspaceBytes(int64_t rows, int64_t num_kv_heads, int64_t group_size, int64_t head_dim,
                                    const PagedAttentionBounds& bounds);

// T is __nv_bfloat16 or __half. All pointers are device memory, those of T and the workspace aligned to 16 bytes. A
// row's bits depend on its query vectors, its position and the entries up to it alone: not on the other queries, nor on
// how its prompt was cut into chunks, nor on the bounds. The values of a query's positions are finite; entries behind
// its last position may hold anything. Launches on `stream`, does not synchronise; returns the launch's error,
// cudaErrorInvalidValue for what is not built: head_dim 64 and 128, group_size 1 to 16, page_tokens 16 and its
// multiples; where every query decodes, as many rows as queries. Constant beside the former kernel: index arrays and
// positions, and, where every query decodes, the entries before its position.
template <typename T = __nv_bfloat16>
cudaError_t LaunchPagedAttention(const PagedAttention<T>& attention, const PagedAttentionBounds& bounds,
                                 void* workspace, cudaStream_t stream,
                                 KernelStart start = KernelStart::kAfterFormer);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_PAGED_ATTENTION_CUDA_H_
