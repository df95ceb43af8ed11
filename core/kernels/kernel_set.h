// The operations of a decoder on a CPU, as a table of functions chosen once for the machine: AVX-512, AVX2 or
// portable.
//
// One source, compiled once a variant (variant.h). All variants give the same bits, and every element of a
// result is accumulated in an order fixed by the shapes of its own row alone. So it depends neither on the
// rows beside it nor on tiling nor on threads. Raw pointers, no allocation, no threads: callers split rows,
// heads or columns among threads. T is float or double. Matrices are row-major; strides count elements.
#ifndef WARPSMITH_CORE_KERNELS_KERNEL_SET_H_
#define WARPSMITH_CORE_KERNELS_KERNEL_SET_H_

#include <cstdint>

#include "core/kernels/log_softmax.h"

namespace warpsmith {

// Columns of a packed panel.
inline constexpr int64_t kPanelColumns = 64;

inline constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// What becomes of a product: `kStore` C = AB; `kAccumulate` the chain of additions starts from C; `kAdd` C =
// C + (AB).
enum class ProductMode { kStore, kAccumulate, kAdd };

// C[rows, columns] from A[rows, depth] B[depth, columns]. Element (r, c) is the chain
//   acc = fma(A[r, k], B[k, c], acc) for k = 0, 1, ..., depth - 1.
// A[r, k] lies at a[r * a_row_stride + k * a_depth_stride], so A may be a transposed view. B[k, c] lies at
// b[(c / 64) * b_panel_stride + k * b_depth_stride + c % 64]: packed panels (see PackPanels), or a plain
// matrix with b_panel_stride 64 and its own row stride.
template <typename T>
struct Product {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  const T* a = nullptr;
  int64_t a_row_stride = 0;
  int64_t a_depth_stride = 1;
  const T* b = nullptr;
  int64_t b_depth_stride = 0;
  int64_t b_panel_stride = kPanelColumns;
  T* c = nullptr;
  int64_t c_row_stride = 0;
  ProductMode mode = ProductMode::kStore;
};

// Rows of a call of attention: a number of each is kept on the stack.
inline constexpr int64_t kAttentionRowsMax = 96;

// Rows of queries of one head against keys and values of one sequence, or of the heads of a group for one
// token; at most kAttentionRowsMax. Row r sees the keys [0, visible_first + r * visible_step). With
// s = scale * q.k, m = max s, p = exp(s - m), l = sum p:
//   out = (sum p v) / l,  log_sum_exp = m + log l.
// Sums run over keys in order; l in 64-byte lanes (key mod lanes), which are then added in halves.
template <typename T>
struct Attention {
  int64_t rows = 0;
  int64_t head_dim = 0;
  int64_t visible_first = 0;
  int64_t visible_step = 0;
  T scale = 1;
  const T* query = nullptr;
  int64_t query_stride = 0;
  const T* key_panels = nullptr;  // keys transposed, packed: key j, element d at [j / 64][d][j % 64]
  const T* value = nullptr;       // [keys, head_dim], value_stride
  int64_t value_stride = 0;
  T* scores = nullptr;  // scratch: rows * RoundUp(keys, 64)
  T* out = nullptr;
  int64_t out_stride = 0;
  T* log_sum_exp = nullptr;  // [rows], may be null
};

// Gradients of Attention for a block of rows. With P = exp(s - log_sum_exp), D = sum_d out * out_grad:
//   dV += P^T dO,  dS = scale * P * (dO V^T - D),  dQ = dS K,  dK += dS^T Q.
template <typename T>
struct AttentionGradient {
  Attention<T> forward;    // as then; `value` is not read, `out` is only read
  const T* key = nullptr;  // [keys, head_dim], key_stride
  int64_t key_stride = 0;
  const T* value_panels = nullptr;  // values transposed and packed as key_panels
  const T* out_grad = nullptr;      // [rows, head_dim], out_stride
  T* score_grads = nullptr;         // scratch, as scores
  T* query_grad = nullptr;          // [rows, head_dim], query_stride: overwritten
  T* key_grad = nullptr;            // [keys, head_dim], grad_stride: added to
  T* value_grad = nullptr;          // [keys, head_dim], grad_stride: added to
  int64_t grad_stride = 0;
};

struct AdamWRange;

template <typename T>
struct KernelSet {
  const char* name;

  void (*multiply)(const Product<T>& product);

  // panels[c / 64][k][c % 64] = matrix[c * row_stride + k] for c < rows, k < depth: the transpose of a matrix
  // [rows, depth] in panels of 64 columns, RoundUp(rows, 64) * depth elements; missing columns are zero.
  void (*pack_panels)(const T* matrix, int64_t rows, int64_t depth, int64_t row_stride, T* panels);

  // y = x * w / sqrt(mean(x^2) + eps) for a row of `size` elements. Zhang and Sennrich, arXiv 1910.07467.
  void (*rms_norm)(const T* x, const T* weight, int64_t size, T eps, T* y);
  // With r = 1 / sqrt(mean(x^2) + eps): dx = r w dy - x r^3 / size * sum(w dy x), added to `x_grad`; dw += dy
  // x r.
  void (*rms_norm_gradient)(const T* x, const T* weight, const T* y_grad, int64_t size, T eps, T* x_grad,
                            T* weight_grad);

  // RMSNorm of a head, then rotation: y[i] = n[i] cos[i] - n[i+h] sin[i], y[i+h] = n[i+h] cos[i] + n[i]
  // sin[i] with h = head_dim / 2; cos and sin have h elements. Su et al., arXiv 2104.09864. head_dim at most
  // 512. Without `weight` (null) there is no norm: n = x.
  void (*norm_rotate)(const T* x, const T* weight, const T* cosine, const T* sine, int64_t head_dim, T eps,
                      T* y);
  // `x_grad` is overwritten and may be `y_grad`; dw is added to, and not used without `weight`.
  void (*norm_rotate_gradient)(const T* x, const T* weight, const T* cosine, const T* sine, const T* y_grad,
                               int64_t head_dim, T eps, T* x_grad, T* weight_grad);

  // y = g / (1 + exp(-g)) * u over 16-wide blocks: gate_up holds g[0..16), u[0..16), g[16..32), ...; `size`
  // elements of y, a multiple of 16. Shazeer, arXiv 2002.05202.
  void (*swiglu)(const T* gate_up, int64_t size, T* y);
  // With s = 1 / (1 + exp(-g)): dg = dy u s (1 + g (1 - s)), du = dy g s.
  void (*swiglu_gradient)(const T* gate_up, const T* y_grad, int64_t size, T* gate_up_grad);

  void (*attention)(const Attention<T>& attention);
  void (*attention_gradient)(const AttentionGradient<T>& gradient);

  // z = logits * inverse_temperature; see log_softmax.h.
  TokenScore<T> (*score_row)(const T* logits, int64_t size, int64_t target, T inverse_temperature);
  // logits become their gradient: (1[i == target] - exp(z - log_sum_exp)) * inverse_temperature * grad.
  void (*score_row_gradient)(T* logits, int64_t size, int64_t target, T inverse_temperature, T log_sum_exp,
                             T grad);

  // y += x, element by element.
  void (*add)(const T* x, int64_t size, T* y);

  // See adamw.h; float only, null for double.
  void (*adamw)(const AdamWRange& range);
};

// For adamw: the constants of a step worked out, and a range of the arrays.
struct AdamWRange {
  float gradient_scale, beta1, beta2, decay_factor, step_size, inverse_sqrt_correction2, epsilon;
  int64_t size;
  const float* gradient;
  float* parameter;
  float* first_moment;
  float* second_moment;
};

enum class CpuVariant { kPortable, kAvx2, kAvx512 };

// The best variant that this machine runs.
CpuVariant BestCpuVariant();

// The table of `variant`, which the machine must support.
template <typename T>
const KernelSet<T>& KernelsOf(CpuVariant variant);

// The table of the best variant.
template <typename T>
const KernelSet<T>& Kernels();

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_KERNEL_SET_H_
