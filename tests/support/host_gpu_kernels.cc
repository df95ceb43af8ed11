// Kernels of the GPU made of the host that round nothing: checksums, and those in float32, which are the references
// themselves.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/kernels/attention_inputs_cuda.h"
#include "core/kernels/decode_attention_cuda.h"
#include "core/kernels/embedding_gather_cuda.h"
#include "core/kernels/first_not_finite_cuda.h"
#include "core/kernels/float32_attention_cuda.h"
#include "core/kernels/linear_cuda.h"
#include "core/kernels/memory_checksum_cuda.h"
#include "core/kernels/residual_norm_cuda.h"
#include "core/kernels/swiglu_cuda.h"
#include "tests/support/host_gpu_faults.h"
#include "tests/support/host_graph.h"

namespace warpsmith {

HostGpuFaults& HostFaults() {
  static HostGpuFaults faults;
  return faults;
}

bool AreFewSplits(int64_t rows, int64_t num_kv_heads, const PagedAttentionBounds& bounds) {
  return bounds.rows_of_query_max == 1 && rows * num_kv_heads <= 8;
}

cudaError_t LaunchMemoryChecksum(const void* memory, int64_t bytes, MemoryChecksum* checksum, cudaStream_t) {
  if (HostFaults().checksum_that_fails >= 0 && HostFaults().checksum_that_fails-- == 0) {
    if (HostFaults().hangs_after_checksum) HostFaults().hangs = true;
    return cudaErrorUnknown;
  }
  *checksum = SumOf(*checksum, ChecksumOf({static_cast<const char*>(memory), static_cast<size_t>(bytes)}));
  return cudaSuccess;
}

// Refuses what cuBLASLt would, and what is not stored in float32.
template <>
cublasStatus_t LinearPlansOf<float>::Prepare(const LinearShape& shape,
                                             const LinearOperandsOf<float>& operands, CublasWorkspace,
                                             cudaStream_t) {
  for (const void* operand : {static_cast<const void*>(operands.x), static_cast<const void*>(operands.weight),
                              operands.residual, static_cast<const void*>(operands.y)}) {
    if (reinterpret_cast<uintptr_t>(operand) % 16 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (shape.output != LinearOutput::kFloat32) return CUBLAS_STATUS_NOT_SUPPORTED;
  choices_.emplace(shape, std::vector<Choice>(row_buckets_.size()));
  return CUBLAS_STATUS_SUCCESS;
}

template <>
cublasStatus_t LinearPlansOf<float>::Launch(const LinearShape& shape, int64_t rows,
                                            const LinearOperandsOf<float>& operands, cudaStream_t) const {
  if (IsRecorded([=, this] { return Launch(shape, rows, operands, nullptr); })) return CUBLAS_STATUS_SUCCESS;
  if (!choices_.contains(shape)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (BucketOfRows(rows, row_buckets_) < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (shape.has_residual != (operands.residual != nullptr)) return CUBLAS_STATUS_INVALID_VALUE;
  std::vector<double> y(rows * shape.columns);
  LinearReference(shape, rows, operands.x, operands.weight, operands.bias,
                  static_cast<const float*>(operands.residual), y.data());
  std::copy(y.begin(), y.end(), static_cast<float*>(operands.y));
  return CUBLAS_STATUS_SUCCESS;
}

template <>
cudaError_t LaunchEmbeddingGather(const EmbeddingGather<float>& gather, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchEmbeddingGather(gather, nullptr); })) return cudaSuccess;
  EmbeddingGatherReference(gather);
  return cudaSuccess;
}

template <>
cudaError_t LaunchResidualNorm(const ResidualNorm<float>& norm, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchResidualNorm(norm, nullptr); })) return cudaSuccess;
  ResidualNormReference(norm, DeviceDtype::kFloat32);
  return cudaSuccess;
}

template <>
cudaError_t LaunchAttentionInputs(const AttentionInputs<float>& inputs, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchAttentionInputs(inputs, nullptr); })) return cudaSuccess;
  AttentionInputsReference(inputs, DeviceDtype::kFloat32);
  return cudaSuccess;
}

template <>
cudaError_t LaunchSwiGlu(const SwiGlu<float>& swiglu, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchSwiGlu(swiglu, nullptr); })) return cudaSuccess;
  SwiGluReference(swiglu, DeviceDtype::kFloat32);
  return cudaSuccess;
}

cudaError_t LaunchFloat32Attention(const PagedAttention<float>& attention, const PagedAttentionBounds& bounds,
                                   cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchFloat32Attention(attention, bounds, nullptr); })) return cudaSuccess;
  if (bounds.rows_of_query_max == 1 && attention.rows != attention.num_queries) return cudaErrorInvalidValue;
  PagedAttentionReference(attention, DeviceDtype::kFloat32);
  return cudaSuccess;
}

template <>
cudaError_t LaunchFirstNotFinite(const float* values, int64_t size, unsigned long long* first, cudaStream_t) {
  const float* const found =
      std::find_if(values, values + size, [](float value) { return !std::isfinite(value); });
  if (found != values + size) *first = std::min(*first, static_cast<unsigned long long>(found - values));
  return cudaSuccess;
}

}  // namespace warpsmith
