// Kernels of training on the GPU made of the host, by their references.
#include <algorithm>
#include <vector>

#include "core/kernels/training/adamw_cuda.h"
#include "core/kernels/training/attention_inputs_gradient_cuda.h"
#include "core/kernels/training/column_sums_cuda.h"
#include "core/kernels/training/embedding_gradient_cuda.h"
#include "core/kernels/training/matrix_product_cuda.h"
#include "core/kernels/training/norm_gradient_cuda.h"
#include "core/kernels/training/rounding_cuda.h"
#include "core/kernels/training/row_scores_cuda.h"
#include "core/kernels/training/swiglu_gradient_cuda.h"
#include "tests/support/host_floats.h"

namespace warpsmith {

template <typename T>
cublasStatus_t MatrixProducts<T>::Launch(const MatrixProduct& product, const T* a, const T* b, void* c,
                                         cudaStream_t, const void* addend) {
  const Floats<T> left(a, product.rows * product.depth), right(b, product.depth * product.columns);
  std::vector<double> sums(product.rows * product.columns);
  const void* const from = addend == nullptr ? c : addend;
  for (size_t i = 0; i < sums.size() && product.adds; ++i) {
    sums[i] = product.in_float32 ? static_cast<const float*>(from)[i] : Load(static_cast<const T*>(from)[i]);
  }
  MatrixProductReference(product, left.values.data(), right.values.data(), sums.data());
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto value = static_cast<float>(sums[i]);
    if (product.in_float32) {
      static_cast<float*>(c)[i] = value;
    } else {
      Store(value, static_cast<T*>(c)[i]);
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}
template class MatrixProducts<__nv_bfloat16>;
template class MatrixProducts<float>;

template <typename T>
cudaError_t LaunchNormGradient(const NormGradient<T>& g, cudaStream_t) {
  const int64_t size = g.rows * g.size;
  Floats<T> x(g.x, size), weight(g.weight, g.size), y_grad(g.y_grad, size), x_grad(g.x_grad, size);
  std::vector<float> y(size);
  NormGradientReference({g.rows, g.size, g.eps, x.get(), weight.get(), y_grad.get(), x_grad.get(), y.data(),
                         nullptr, g.weight_grad},
                        kDtypeOf<T>);
  x_grad.WriteTo(g.x_grad);
  for (int64_t i = 0; i < size && g.y != nullptr; ++i) Store(y[i], g.y[i]);
  return cudaSuccess;
}
template cudaError_t LaunchNormGradient(const NormGradient<__nv_bfloat16>&, cudaStream_t);
template cudaError_t LaunchNormGradient(const NormGradient<float>&, cudaStream_t);

template <typename T>
cudaError_t LaunchColumnSums(const ColumnSums<T>& sums, cudaStream_t) {
  Floats<T> x(sums.x, sums.rows * RowStride(sums));
  ColumnSumsReference({sums.rows, sums.columns, x.get(), sums.sums, sums.row_stride});
  return cudaSuccess;
}
template cudaError_t LaunchColumnSums(const ColumnSums<__nv_bfloat16>&, cudaStream_t);
template cudaError_t LaunchColumnSums(const ColumnSums<float>&, cudaStream_t);

template <typename T>
cudaError_t LaunchSwiGluGradient(const SwiGluGradient<T>& g, cudaStream_t) {
  Floats<T> gate_up(g.gate_up, g.rows * 2 * g.size), y(g.y_grad, g.rows * g.size);
  SwiGluGradientReference({g.rows, g.size, gate_up.get(), y.get(), gate_up.get(), y.get()}, kDtypeOf<T>);
  gate_up.WriteTo(g.gate_up_grad);
  y.WriteTo(g.y);
  return cudaSuccess;
}
template cudaError_t LaunchSwiGluGradient(const SwiGluGradient<__nv_bfloat16>&, cudaStream_t);
template cudaError_t LaunchSwiGluGradient(const SwiGluGradient<float>&, cudaStream_t);

template <typename T>
cudaError_t LaunchAttentionInputsGradient(const AttentionInputsGradient<T>& g, cudaStream_t) {
  const AttentionInputs<T>& f = g.forward;
  const int64_t heads = HeadsOfRow(f) * f.head_dim, entry = f.num_kv_heads * f.head_dim;
  Floats<T> qkv(f.qkv, f.rows * heads), bias(f.bias, heads), query_norm(f.query_norm, f.head_dim),
      key_norm(f.key_norm, f.head_dim), query_grad(g.query_grad, f.rows * entry * f.group_size),
      key_grad(g.key_grad, f.rows * entry), value_grad(g.value_grad, f.rows * entry);
  AttentionInputsGradient<float> gradient;
  gradient.forward = {.rows = f.rows,
                      .num_kv_heads = f.num_kv_heads,
                      .group_size = f.group_size,
                      .head_dim = f.head_dim,
                      .eps = f.eps,
                      .qkv = qkv.get(),
                      .bias = bias.get(),
                      .query_norm = query_norm.get(),
                      .key_norm = key_norm.get(),
                      .cosines = f.cosines,
                      .sines = f.sines,
                      .positions = f.positions};
  gradient.query_grad = query_grad.get();
  gradient.key_grad = key_grad.get();
  gradient.value_grad = value_grad.get();
  gradient.qkv_grad = qkv.get();
  gradient.query_norm_grad = g.query_norm_grad;
  gradient.key_norm_grad = g.key_norm_grad;
  AttentionInputsGradientReference(gradient, kDtypeOf<T>);
  qkv.WriteTo(g.qkv_grad);
  return cudaSuccess;
}
template cudaError_t LaunchAttentionInputsGradient(const AttentionInputsGradient<__nv_bfloat16>&,
                                                   cudaStream_t);
template cudaError_t LaunchAttentionInputsGradient(const AttentionInputsGradient<float>&, cudaStream_t);

template <typename T>
cudaError_t LaunchEmbeddingGradient(const EmbeddingGradient<T>& g, cudaStream_t) {
  Floats<T> x_grad(g.x_grad, g.indptr[g.num_tokens] * g.size);
  EmbeddingGradientReference(
      {g.num_tokens, g.size, g.tokens, g.indptr, g.rows, x_grad.get(), g.embedding_grad});
  return cudaSuccess;
}
template cudaError_t LaunchEmbeddingGradient(const EmbeddingGradient<__nv_bfloat16>&, cudaStream_t);
template cudaError_t LaunchEmbeddingGradient(const EmbeddingGradient<float>&, cudaStream_t);

cudaError_t LaunchRowScoring(const RowScoring& scoring, cudaStream_t) {
  RowScoringReference(scoring);
  return cudaSuccess;
}

template <typename T>
cudaError_t LaunchRowScoringGradient(const RowScoringGradient<T>& g, cudaStream_t) {
  std::vector<float> gradient(g.forward.rows * g.forward.row_stride);
  RowScoringGradientReference({g.forward, g.log_prob_grads, gradient.data()}, kDtypeOf<T>);
  for (size_t i = 0; i < gradient.size(); ++i) Store(gradient[i], g.logit_grads[i]);
  return cudaSuccess;
}
template cudaError_t LaunchRowScoringGradient(const RowScoringGradient<__nv_bfloat16>&, cudaStream_t);
template cudaError_t LaunchRowScoringGradient(const RowScoringGradient<float>&, cudaStream_t);

template <typename T>
cudaError_t LaunchAdamW(const DeviceAdamW<T>& update, cudaStream_t) {
  AdamWStep(update.options, update.size, update.gradient, update.parameter, update.first_moment,
            update.second_moment, nullptr);
  std::fill_n(update.gradient, update.size, 0.0f);
  for (int64_t i = 0; i < update.size; ++i) Store(update.parameter[i], update.stored[i]);
  return cudaSuccess;
}
template cudaError_t LaunchAdamW(const DeviceAdamW<__nv_bfloat16>&, cudaStream_t);
template cudaError_t LaunchAdamW(const DeviceAdamW<float>&, cudaStream_t);

cudaError_t LaunchRounding(const float* values, int64_t size, __nv_bfloat16* rounded, cudaStream_t) {
  for (int64_t i = 0; i < size; ++i) Store(values[i], rounded[i]);
  return cudaSuccess;
}

cudaError_t LaunchSumOfSquares(const float* values, int64_t size, double*, double* sum, cudaStream_t) {
  *sum += SumOfSquares(size, values, nullptr);
  return cudaSuccess;
}

}  // namespace warpsmith
