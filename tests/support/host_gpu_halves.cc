// Kernels of the GPU made of the host that round: those in bfloat16 and float16, by their references.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/kernels/attention_inputs_cuda.h"
#include "core/kernels/decode_attention_cuda.h"
#include "core/kernels/embedding_gather_cuda.h"
#include "core/kernels/first_not_finite_cuda.h"
#include "core/kernels/linear_cuda.h"
#include "core/kernels/paged_attention_cuda.h"
#include "core/kernels/residual_norm_cuda.h"
#include "core/kernels/streamed_linear_cuda.h"
#include "core/kernels/swiglu_cuda.h"
#include "core/model/stored_type_cuda.h"
#include "tests/support/host_floats.h"
#include "tests/support/host_graph.h"

namespace warpsmith {
namespace {

// Refuses what cuBLASLt would: operands that are not aligned.
template <typename T>
bool IsMultiplied(const LinearShape& shape, const LinearOperandsOf<T>& operands) {
  for (const void* operand : {static_cast<const void*>(operands.x), static_cast<const void*>(operands.weight),
                              operands.residual, static_cast<const void*>(operands.y)}) {
    if (reinterpret_cast<uintptr_t>(operand) % 16 != 0) return false;
  }
  return shape.depth % 8 == 0 && shape.columns % 8 == 0;
}

template <typename T>
void Multiply(const LinearShape& shape, int64_t rows, const LinearOperandsOf<T>& operands) {
  Floats<T> x(operands.x, rows * shape.depth), weight(operands.weight, shape.columns * shape.depth),
      residual(static_cast<const T*>(operands.residual), rows * shape.columns);
  std::vector<double> y(rows * shape.columns);
  LinearReference(shape, rows, x.get(), weight.get(), nullptr, residual.get(), y.data());
  for (size_t i = 0; i < y.size(); ++i) {
    const auto value = static_cast<float>(y[i]);
    if (shape.output == LinearOutput::kFloat32) {
      static_cast<float*>(operands.y)[i] = value;
    } else {
      Store(value, static_cast<T*>(operands.y)[i]);
    }
  }
}

}  // namespace

template <typename T>
cublasStatus_t LinearPlansOf<T>::Prepare(const LinearShape& shape, const LinearOperandsOf<T>& operands,
                                         CublasWorkspace, cudaStream_t) {
  if (!IsMultiplied(shape, operands)) return CUBLAS_STATUS_NOT_SUPPORTED;
  choices_.emplace(shape, std::vector<Choice>(row_buckets_.size()));
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t LinearPlansOf<T>::Launch(const LinearShape& shape, int64_t rows,
                                        const LinearOperandsOf<T>& operands, cudaStream_t) const {
  if (IsRecorded([=, this] { return Launch(shape, rows, operands, nullptr); })) return CUBLAS_STATUS_SUCCESS;
  if (!choices_.contains(shape)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (BucketOfRows(rows, row_buckets_) < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (shape.has_residual != (operands.residual != nullptr)) return CUBLAS_STATUS_INVALID_VALUE;
  Multiply(shape, rows, operands);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cudaError_t LaunchStreamedLinear(const LinearShape& shape, int64_t rows, const LinearOperandsOf<T>& operands,
                                 cudaStream_t, KernelStart, NextStart) {
  if (IsRecorded([=] { return LaunchStreamedLinear(shape, rows, operands, nullptr); })) return cudaSuccess;
  if (rows < 1 || shape.depth % 8 != 0 || shape.columns % 8 != 0) return cudaErrorInvalidValue;
  Multiply(shape, rows, operands);
  return cudaSuccess;
}

template <typename T>
cudaError_t LaunchResidualNorm(const ResidualNorm<T>& norm, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchResidualNorm(norm, nullptr); })) return cudaSuccess;
  const int64_t size = norm.rows * norm.size;
  Floats<T> x(norm.x, size), delta(norm.delta, norm.num_deltas * size), weight(norm.weight, norm.size);
  Floats<T> y = x;
  ResidualNormReference(
      {norm.rows, norm.size, norm.eps, x.get(), delta.get(), weight.get(), y.get(), norm.num_deltas},
      kDtypeOf<T>);
  if (norm.delta != nullptr) x.WriteTo(norm.x);
  y.WriteTo(norm.y);
  return cudaSuccess;
}

template <typename T>
cudaError_t LaunchAttentionInputs(const AttentionInputs<T>& inputs, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchAttentionInputs(inputs, nullptr); })) return cudaSuccess;
  const int64_t heads = HeadsOfRow(inputs) * inputs.head_dim, entry = inputs.num_kv_heads * inputs.head_dim;
  const int64_t queries_size = inputs.rows * inputs.num_kv_heads * inputs.group_size * inputs.head_dim;
  const int64_t entries = 1 + *std::max_element(inputs.kv_entries, inputs.kv_entries + inputs.rows);
  Floats<T> qkv(inputs.qkv, inputs.rows * heads), bias(inputs.bias, heads),
      query_norm(inputs.query_norm, inputs.head_dim), key_norm(inputs.key_norm, inputs.head_dim),
      queries(inputs.queries, queries_size), keys(inputs.key_pages, entries * entry),
      values(inputs.value_pages, entries * entry);
  AttentionInputsReference(
      {inputs.rows, inputs.num_kv_heads, inputs.group_size, inputs.head_dim, inputs.eps, qkv.get(),
       bias.get(), query_norm.get(), key_norm.get(), inputs.cosines, inputs.sines, inputs.positions,
       inputs.kv_entries, queries.get(), keys.get(), values.get()},
      kDtypeOf<T>);
  queries.WriteTo(inputs.queries);
  keys.WriteTo(inputs.key_pages);
  values.WriteTo(inputs.value_pages);
  return cudaSuccess;
}

template <typename T>
cudaError_t LaunchSwiGlu(const SwiGlu<T>& swiglu, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchSwiGlu(swiglu, nullptr); })) return cudaSuccess;
  Floats<T> gate_up(swiglu.gate_up, swiglu.rows * 2 * swiglu.size), y(swiglu.y, swiglu.rows * swiglu.size);
  SwiGluReference({swiglu.rows, swiglu.size, gate_up.get(), y.get()}, kDtypeOf<T>);
  y.WriteTo(swiglu.y);
  return cudaSuccess;
}

template <typename T>
cudaError_t LaunchStreamedSwiGlu(const LinearShape& shape, int64_t rows, const LinearOperandsOf<T>& operands,
                                 cudaStream_t stream, KernelStart start, NextStart) {
  if (IsRecorded([=] { return LaunchStreamedSwiGlu(shape, rows, operands, nullptr); })) return cudaSuccess;
  std::vector<T> gate_up(rows * shape.columns);
  const LinearOperandsOf<T> product = {operands.x, operands.weight, nullptr, nullptr, gate_up.data()};
  if (const auto error = LaunchStreamedLinear(shape, rows, product, stream, start); error != cudaSuccess)
    return error;
  return LaunchSwiGlu<T>({rows, shape.columns / 2, gate_up.data(), static_cast<T*>(operands.y)}, stream,
                         start);
}

size_t PagedAttentionWorkspaceBytes(int64_t rows, int64_t num_kv_heads, int64_t group_size, int64_t head_dim,
                                    const PagedAttentionBounds& bounds) {
  return rows * num_kv_heads * group_size * head_dim * (bounds.rows_of_query_max == 1 ? 8 : 4);
}

namespace {

// o of one query head of one row, by the formula of paged_attention.h.
template <typename T>
void AttendHead(const PagedAttention<T>& attention, int64_t query, int64_t row, int64_t head) {
  const int64_t h = attention.head_dim, kv_head = head / attention.group_size;
  const int64_t at = (row * attention.num_kv_heads * attention.group_size + head) * h;
  std::vector<double> weights, output(h);
  std::vector<int64_t> places;
  for (int64_t p = 0; p <= attention.positions[row]; ++p) {
    const int64_t page = attention.page_indices[attention.page_indptr[query] + p / attention.page_tokens];
    const int64_t entry = page * attention.page_tokens + p % attention.page_tokens;
    places.push_back((entry * attention.num_kv_heads + kv_head) * h);
    double score = 0;
    for (int64_t i = 0; i < h; ++i) {
      score += double{Load(attention.queries[at + i])} * Load(attention.key_pages[places.back() + i]);
    }
    weights.push_back(score * attention.scale);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (size_t p = 0; p < weights.size(); ++p) {
    for (int64_t i = 0; i < h; ++i)
      output[i] += weights[p] / sum * Load(attention.value_pages[places[p] + i]);
  }
  for (int64_t i = 0; i < h; ++i) Store(static_cast<float>(output[i]), attention.output[at + i]);
}

}  // namespace

template <typename T>
cudaError_t LaunchPagedAttention(const PagedAttention<T>& attention, const PagedAttentionBounds& bounds,
                                 void*, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchPagedAttention(attention, bounds, nullptr, nullptr); }))
    return cudaSuccess;
  for (int64_t query = 0; query < attention.num_queries; ++query) {
    const int64_t begin = attention.row_indptr[query], end = attention.row_indptr[query + 1];
    if (end - begin > bounds.rows_of_query_max) return cudaErrorInvalidValue;
    for (int64_t row = begin; row < end; ++row) {
      if (attention.positions[row] >= bounds.context_tokens_max) return cudaErrorInvalidValue;
      for (int64_t head = 0; head < attention.num_kv_heads * attention.group_size; ++head) {
        AttendHead(attention, query, row, head);
      }
    }
  }
  return cudaSuccess;
}

template <typename T>
cudaError_t LaunchEmbeddingGather(const EmbeddingGather<T>& gather, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchEmbeddingGather(gather, nullptr); })) return cudaSuccess;
  for (int64_t row = 0; row < gather.rows; ++row) {
    const int64_t token = TokenOfRow(gather, row);
    if (token < 0 || token >= gather.num_tokens) return cudaErrorIllegalAddress;
    std::copy_n(gather.embedding + token * gather.size, gather.size, gather.x + row * gather.size);
  }
  return cudaSuccess;
}

template <typename T>
cudaError_t LaunchFirstNotFinite(const T* values, int64_t size, unsigned long long* first, cudaStream_t) {
  for (int64_t i = 0; i < size && static_cast<unsigned long long>(i) < *first; ++i) {
    if (!std::isfinite(Load(values[i]))) *first = i;
  }
  return cudaSuccess;
}

template <typename T>
bool CanDecodeAttention(const AttentionInputs<T>&, const PagedAttention<T>& attention,
                        const PagedAttentionBounds& bounds) {
  return AreFewSplits(attention.rows, attention.num_kv_heads, bounds);
}

template <typename T>
cudaError_t LaunchDecodeAttention(const AttentionInputs<T>& inputs, const PagedAttention<T>& attention,
                                  const PagedAttentionBounds& bounds, cudaStream_t stream, KernelStart start,
                                  NextStart) {
  if (!CanDecodeAttention(inputs, attention, bounds)) return cudaErrorInvalidValue;
  if (const auto error = LaunchAttentionInputs<T>(inputs, stream, start); error != cudaSuccess) return error;
  return LaunchPagedAttention(attention, bounds, nullptr, stream, start);
}

template cublasStatus_t LinearPlansOf<__nv_bfloat16>::Prepare(const LinearShape&,
                                                              const LinearOperandsOf<__nv_bfloat16>&,
                                                              CublasWorkspace, cudaStream_t);
template cublasStatus_t LinearPlansOf<__nv_bfloat16>::Launch(const LinearShape&, int64_t,
                                                             const LinearOperandsOf<__nv_bfloat16>&,
                                                             cudaStream_t) const;
template cublasStatus_t LinearPlansOf<__half>::Prepare(const LinearShape&, const LinearOperandsOf<__half>&,
                                                       CublasWorkspace, cudaStream_t);
template cublasStatus_t LinearPlansOf<__half>::Launch(const LinearShape&, int64_t,
                                                      const LinearOperandsOf<__half>&, cudaStream_t) const;
template cudaError_t LaunchStreamedLinear(const LinearShape&, int64_t, const LinearOperandsOf<__nv_bfloat16>&,
                                          cudaStream_t, KernelStart, NextStart);
template cudaError_t LaunchStreamedSwiGlu(const LinearShape&, int64_t, const LinearOperandsOf<__nv_bfloat16>&,
                                          cudaStream_t, KernelStart, NextStart);
template cudaError_t LaunchResidualNorm(const ResidualNorm<__nv_bfloat16>&, cudaStream_t, KernelStart);
template cudaError_t LaunchAttentionInputs(const AttentionInputs<__nv_bfloat16>&, cudaStream_t, KernelStart);
template cudaError_t LaunchSwiGlu(const SwiGlu<__nv_bfloat16>&, cudaStream_t, KernelStart);
template cudaError_t LaunchPagedAttention(const PagedAttention<__nv_bfloat16>&, const PagedAttentionBounds&,
                                          void*, cudaStream_t, KernelStart);
template cudaError_t LaunchEmbeddingGather(const EmbeddingGather<__nv_bfloat16>&, cudaStream_t, KernelStart);
template cudaError_t LaunchFirstNotFinite(const __nv_bfloat16*, int64_t, unsigned long long*, cudaStream_t);
template bool CanDecodeAttention(const AttentionInputs<__nv_bfloat16>&, const PagedAttention<__nv_bfloat16>&,
                                 const PagedAttentionBounds&);
template cudaError_t LaunchDecodeAttention(const AttentionInputs<__nv_bfloat16>&,
                                           const PagedAttention<__nv_bfloat16>&, const PagedAttentionBounds&,
                                           cudaStream_t, KernelStart, NextStart);

template cudaError_t LaunchStreamedLinear(const LinearShape&, int64_t, const LinearOperandsOf<__half>&,
                                          cudaStream_t, KernelStart, NextStart);
template cudaError_t LaunchStreamedSwiGlu(const LinearShape&, int64_t, const LinearOperandsOf<__half>&,
                                          cudaStream_t, KernelStart, NextStart);
template cudaError_t LaunchResidualNorm(const ResidualNorm<__half>&, cudaStream_t, KernelStart);
template cudaError_t LaunchAttentionInputs(const AttentionInputs<__half>&, cudaStream_t, KernelStart);
template cudaError_t LaunchSwiGlu(const SwiGlu<__half>&, cudaStream_t, KernelStart);
template cudaError_t LaunchPagedAttention(const PagedAttention<__half>&, const PagedAttentionBounds&, void*,
                                          cudaStream_t, KernelStart);
template cudaError_t LaunchEmbeddingGather(const EmbeddingGather<__half>&, cudaStream_t, KernelStart);
template cudaError_t LaunchFirstNotFinite(const __half*, int64_t, unsigned long long*, cudaStream_t);
template bool CanDecodeAttention(const AttentionInputs<__half>&, const PagedAttention<__half>&,
                                 const PagedAttentionBounds&);
template cudaError_t LaunchDecodeAttention(const AttentionInputs<__half>&, const PagedAttention<__half>&,
                                           const PagedAttentionBounds&, cudaStream_t, KernelStart, NextStart);

}  // namespace warpsmith
