// attention_inputs.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_ATTENTION_INPUTS_CUDA_H_
#define WARPSMITH_CORE_KERNELS_ATTENTION_INPUTS_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "core/kernels/attention_inputs.h"
#include "core/kernels/kernel_start.h"

namespace warpsmith {

// T is __nv_bfloat16, __half or float. All pointers are device memory, those of arrays aligned to 8 bytes; head_dim is
// a multiple of 4 and at most 256. A row's result depends on that row alone. Launches on `stream`, does not
// synchronise; returns the launch's error, cudaErrorInvalidValue for other sizes. Constant beside the former kernel:
// all but qkv.
template <typename T = __nv_bfloat16>
cudaError_t LaunchAttentionInputs(const AttentionInputs<T>& inputs, cudaStream_t stream,
                                  KernelStart start = KernelStart::kAfterFormer);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ATTENTION_INPUTS_CUDA_H_
