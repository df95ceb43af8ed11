// Attention of a decoder's step on a GPU, by what is stored.
#ifndef WARPSMITH_CORE_MODEL_DEVICE_ATTENTION_CUDA_H_
#define WARPSMITH_CORE_MODEL_DEVICE_ATTENTION_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "core/kernels/attention_inputs.h"
#include "core/kernels/kernel_start.h"
#include "core/kernels/paged_attention_cuda.h"
#include "core/model/device_decoder_options.h"
#include "core/model/model_config.h"

namespace warpsmith {

// The most that the attention's kernels want in any step that the options allow; nothing in float32.
// A step of queries of one row each has at most as many rows as may want logits.
int64_t AttentionWorkspaceBytes(const ModelConfig& config, const DeviceDecoderOptions& options);

// Launches `inputs` and then `attention`, which reads what they write, beside the kernel before. `workspace` holds
// AttentionWorkspaceBytes; `next` is LaunchDecodeAttention's, where that is launched. T is __nv_bfloat16, __half or
// float. INTERNAL with CUDA's message.
template <typename T>
absl::Status LaunchAttention(const AttentionInputs<T>& inputs, const PagedAttention<T>& attention,
                             const PagedAttentionBounds& bounds, std::byte* workspace, cudaStream_t stream,
                             NextStart next);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_DEVICE_ATTENTION_CUDA_H_
