// Attention of few decoding rows, with its inputs: attention_inputs.h and paged_attention.h in one kernel, where
// launches would take longer than the work.
#ifndef WARPSMITH_CORE_KERNELS_DECODE_ATTENTION_CUDA_H_
#define WARPSMITH_CORE_KERNELS_DECODE_ATTENTION_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "core/kernels/attention_inputs.h"
#include "core/kernels/kernel_start.h"
#include "core/kernels/paged_attention_cuda.h"

namespace warpsmith {

// Whether decoding rows are so few, and the bound of their contexts so short, that each split of a KV head can have a
// block at once.
bool AreFewSplits(int64_t rows, int64_t num_kv_heads, const PagedAttentionBounds& bounds);

// Whether it is built for these: queries of one row each, of few splits, and sizes that both kernels have in common. T
// is __nv_bfloat16 or __half, here and below.
template <typename T>
bool CanDecodeAttention(const AttentionInputs<T>& inputs, const PagedAttention<T>& attention,
                        const PagedAttentionBounds& bounds);

// Keys, values and outputs have the bits that LaunchAttentionInputs and LaunchPagedAttention give one after the other,
// with the same arguments; `queries` of both are not used. A row reads no entry that another row of the
// launch writes, and its own entry is that of its position. Launches on `stream`, does not synchronise; returns the
// launch's error, cudaErrorInvalidValue where CanDecodeAttention denies it. Constant beside the former kernel: all but
// qkv. `next`: with kAfterLoads the next kernel's weights come behind the pages, which are wanted first; that is faster
// where this kernel begins early itself, for its loads then take their time beside the former.
template <typename T>
cudaError_t LaunchDecodeAttention(const AttentionInputs<T>& inputs, const PagedAttention<T>& attention,
                                  const PagedAttentionBounds& bounds, cudaStream_t stream,
                                  KernelStart start = KernelStart::kAfterFormer,
                                  NextStart next = NextStart::kAfterLoads);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_DECODE_ATTENTION_CUDA_H_
