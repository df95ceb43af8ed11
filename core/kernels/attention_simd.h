// Attention of kernel_set.h, built from products and row operations. Included by variant.h only.
#ifndef WARPSMITH_CORE_KERNELS_ATTENTION_SIMD_H_
#define WARPSMITH_CORE_KERNELS_ATTENTION_SIMD_H_

namespace warpsmith {
namespace {

template <typename T>
inline int64_t VisibleKeys(const Attention<T>& a, int64_t row) {
  return a.visible_first + row * a.visible_step;
}
// Keys that any of the rows sees, and the row stride of the scratch.
template <typename T>
inline int64_t NumKeys(const Attention<T>& a) {
  return VisibleKeys(a, a.rows - 1);
}
template <typename T>
inline int64_t ScoreStride(const Attention<T>& a) {
  return RoundUp(NumKeys(a), kPanelColumns);
}

// products[r][j] = rows[r] . columns[j] for all keys, whole vectors at a time; what lies past the keys is
// never used.
template <typename T>
void DotWithPanels(const Attention<T>& a, const T* rows, int64_t row_stride, const T* panels, T* products) {
  Product<T> p;
  p.rows = a.rows;
  p.columns = RoundUp(NumKeys(a), Vec<T>::kLanes);
  p.depth = a.head_dim;
  p.a = rows;
  p.a_row_stride = row_stride;
  p.b = panels;
  p.b_depth_stride = kPanelColumns;
  p.b_panel_stride = a.head_dim * kPanelColumns;
  p.c = products;
  p.c_row_stride = ScoreStride(a);
  Multiply(p);
}

// out[r] (+)= sum_j weights[r][j] matrix[j] over all keys.
template <typename T>
void SumOverKeys(const Attention<T>& a, const T* weights, const T* matrix, int64_t matrix_stride, T* out,
                 int64_t out_stride) {
  Product<T> p;
  p.rows = a.rows;
  p.columns = a.head_dim;
  p.depth = NumKeys(a);
  p.a = weights;
  p.a_row_stride = ScoreStride(a);
  p.b = matrix;
  p.b_depth_stride = matrix_stride;
  p.c = out;
  p.c_row_stride = out_stride;
  Multiply(p);
}

// out[j] += sum_r weights[r][j] rows[r]: the transposed counterpart.
template <typename T>
void AddOverRows(const Attention<T>& a, const T* weights, const T* rows, int64_t row_stride, T* out,
                 int64_t out_stride) {
  Product<T> p;
  p.rows = NumKeys(a);
  p.columns = a.head_dim;
  p.depth = a.rows;
  p.a = weights;
  p.a_row_stride = 1;
  p.a_depth_stride = ScoreStride(a);
  p.b = rows;
  p.b_depth_stride = row_stride;
  p.c = out;
  p.c_row_stride = out_stride;
  p.mode = ProductMode::kAccumulate;
  Multiply(p);
}

template <typename T>
inline void ZeroFrom(T* row, int64_t first, int64_t end) {
  for (int64_t i = first; i < end; ++i) row[i] = T(0);
}

// Turns a row of products into exp(scale * products - shift), zero from `visible` on; returns the sum.
template <typename T>
T Exponentials(T* row, int64_t visible, int64_t end, T scale, T shift) {
  using V = Vec<T>;
  const V factor = V::Broadcast(scale), offset = V::Broadcast(-shift);
  V sum = V::Zero();
  int64_t i = 0;
  for (; i + V::kLanes <= visible; i += V::kLanes) {
    const V p = Exp(Fma(V::Load(row + i), factor, offset));
    p.Store(row + i);
    sum = sum + p;
  }
  if (i < visible) {
    Exp(Fma(V::Load(row + i), factor, offset)).Store(row + i);
    sum = sum + V::LoadPartial(row + i, static_cast<int>(visible - i));
  }
  ZeroFrom(row, visible, end);
  return ReduceAdd(sum);
}

template <typename T>
void Attend(const Attention<T>& a) {
  using V = Vec<T>;
  DotWithPanels(a, a.query, a.query_stride, a.key_panels, a.scores);
  const int64_t stride = ScoreStride(a);
  T inverse_sums[kAttentionRowsMax];
  for (int64_t r = 0; r < a.rows; ++r) {
    T* row = a.scores + r * stride;
    const T highest = ScaledMax(row, VisibleKeys(a, r), a.scale);
    const T sum = Exponentials(row, VisibleKeys(a, r), NumKeys(a), a.scale, highest);
    inverse_sums[r] = T(1) / sum;
    if (a.log_sum_exp != nullptr) a.log_sum_exp[r] = highest + Logarithm(sum);
  }
  SumOverKeys(a, a.scores, a.value, a.value_stride, a.out, a.out_stride);
  for (int64_t r = 0; r < a.rows; ++r) {
    const V scale = V::Broadcast(inverse_sums[r]);
    T* out = a.out + r * a.out_stride;
    ForVectors<T>(a.head_dim,
                  [&](int64_t i, int count) { StoreUpTo(LoadUpTo(out + i, count) * scale, out + i, count); });
  }
}

// sum_i a[i] b[i].
template <typename T>
inline T Dot(const T* a, const T* b, int64_t size) {
  Vec<T> sum = Vec<T>::Zero();
  ForVectors<T>(
      size, [&](int64_t i, int count) { sum = Fma(LoadUpTo(a + i, count), LoadUpTo(b + i, count), sum); });
  return ReduceAdd(sum);
}

// One row: products of dO and V become dS = scale * P * (dP - D), zero from `visible` on.
template <typename T>
void ScoreGradients(const T* probabilities, T* row, int64_t visible, int64_t end, T scale, T mean) {
  using V = Vec<T>;
  const V factor = V::Broadcast(scale), offset = V::Broadcast(mean);
  for (int64_t i = 0; i < visible; i += V::kLanes) {
    (factor * V::Load(probabilities + i) * (V::Load(row + i) - offset)).Store(row + i);
  }
  ZeroFrom(row, visible, end);
}

template <typename T>
void AttendGradient(const AttentionGradient<T>& g) {
  const Attention<T>& a = g.forward;
  const int64_t stride = ScoreStride(a);
  DotWithPanels(a, a.query, a.query_stride, a.key_panels, a.scores);
  DotWithPanels(a, g.out_grad, a.out_stride, g.value_panels, g.score_grads);
  for (int64_t r = 0; r < a.rows; ++r) {
    const int64_t visible = VisibleKeys(a, r);
    Exponentials(a.scores + r * stride, visible, NumKeys(a), a.scale, a.log_sum_exp[r]);
    const T mean = Dot(a.out + r * a.out_stride, g.out_grad + r * a.out_stride, a.head_dim);
    ScoreGradients(a.scores + r * stride, g.score_grads + r * stride, visible, NumKeys(a), a.scale, mean);
  }
  AddOverRows(a, a.scores, g.out_grad, a.out_stride, g.value_grad, g.grad_stride);
  AddOverRows(a, g.score_grads, a.query, a.query_stride, g.key_grad, g.grad_stride);
  SumOverKeys(a, g.score_grads, g.key, g.key_stride, g.query_grad, a.query_stride);
}

}  // namespace
}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ATTENTION_SIMD_H_
