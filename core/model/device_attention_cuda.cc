#include "core/model/device_attention_cuda.h"

#include <algorithm>
#include <type_traits>

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

template <typename T>
absl::Status LaunchAttention(const AttentionInputs<T>& inputs, const PagedAttention<T>& attention,
                             const PagedAttentionBounds& bounds, std::byte* workspace, cudaStream_t stream,
                             NextStart next) {
  constexpr const char* kAttention = "launch of attention";
  if constexpr (!std::is_same_v<T, float>) {
    if (CanDecodeAttention(inputs, attention, bounds)) {
      return CudaStatus(
          LaunchDecodeAttention(inputs, attention, bounds, stream, KernelStart::kBesideFormer, next),
          "launch of attention with its inputs");
    }
  }
  RETURN_IF_ERROR(CudaStatus(LaunchAttentionInputs(inputs, stream, KernelStart::kBesideFormer),
                             "launch of attention's inputs"));
  if constexpr (std::is_same_v<T, float>) {
    return CudaStatus(LaunchFloat32Attention(attention, bounds, stream, KernelStart::kBesideFormer),
                      kAttention);
  } else {
    return CudaStatus(LaunchPagedAttention(attention, bounds, workspace, stream, KernelStart::kBesideFormer),
                      kAttention);
  }
}

template absl::Status LaunchAttention(const AttentionInputs<__nv_bfloat16>&,
                                      const PagedAttention<__nv_bfloat16>&, const PagedAttentionBounds&,
                                      std::byte*, cudaStream_t, NextStart);
template absl::Status LaunchAttention(const AttentionInputs<__half>&, const PagedAttention<__half>&,
                                      const PagedAttentionBounds&, std::byte*, cudaStream_t, NextStart);
template absl::Status LaunchAttention(const AttentionInputs<float>&, const PagedAttention<float>&,
                                      const PagedAttentionBounds&, std::byte*, cudaStream_t, NextStart);

}  // namespace warpsmith
