#include "core/model/device_attention_cuda.h"

#include <algorithm>

#include "core/base/status_macros.h"
#include "core/kernels/attention_inputs_cuda.h"
#include "core/kernels/decode_attention_cuda.h"
#include "core/kernels/float32_attention_cuda.h"
#include "core/model/cuda_status.h"
#include "core/model/device_memory_plan.h"

namespace warpsmith {

int64_t AttentionWorkspaceBytes(const ModelConfig& config, const DeviceDecoderOptions& options) {
  if (options.dtype == DeviceDtype::kFloat32) return 0;
  size_t most = 0;
  for (int64_t rows = 1; rows <= options.rows_max; ++rows) {
    const int64_t largest = RowsOfQueryBound(rows, options.rows_max);
    for (int64_t each = rows <= options.logits_rows_max ? 1 : 2;; each = std::min(2 * each, largest)) {
      most =
          std::max(most, PagedAttentionWorkspaceBytes(rows, config.num_key_value_heads, config.group_size(),
                                                      config.head_dim, {each, options.context_tokens_max}));
      if (each >= largest) break;
    }
  }
  return static_cast<int64_t>(most);
}

absl::Status LaunchAttention(const AttentionInputs<__nv_bfloat16>& inputs,
                             const PagedAttention<__nv_bfloat16>& attention,
                             const PagedAttentionBounds& bounds, std::byte* workspace, cudaStream_t stream) {
  if (CanDecodeAttention(inputs, attention, bounds)) {
    return CudaStatus(LaunchDecodeAttention(inputs, attention, bounds, stream, KernelStart::kBesideFormer),
                      "launch of attention with its inputs");
  }
  RETURN_IF_ERROR(CudaStatus(LaunchAttentionInputs(inputs, stream, KernelStart::kBesideFormer),
                             "launch of attention's inputs"));
  return CudaStatus(LaunchPagedAttention(attention, bounds, workspace, stream, KernelStart::kBesideFormer),
                    "launch of attention");
}

absl::Status LaunchAttention(const AttentionInputs<float>& inputs, const PagedAttention<float>& attention,
                             const PagedAttentionBounds& bounds, std::byte*, cudaStream_t stream) {
  RETURN_IF_ERROR(CudaStatus(LaunchAttentionInputs(inputs, stream, KernelStart::kBesideFormer),
                             "launch of attention's inputs"));
  return CudaStatus(LaunchFloat32Attention(attention, bounds, stream, KernelStart::kBesideFormer),
                    "launch of attention");
}

}  // namespace warpsmith
