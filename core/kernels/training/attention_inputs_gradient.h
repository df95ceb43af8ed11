// The backward pass of attention_inputs.h: contract, formula, and the reference on a CPU.
//
// A query or key head, with x = head + bias, h = head_dim / 2 and dy the gradient of what attention read, gives
//   dn[i] = dy[i] cos[i] + dy[i + h] sin[i],  dn[i + h] = dy[i + h] cos[i] - dy[i] sin[i]
//   with a norm, r = 1 / sqrt(mean x^2 + eps):  dx = r w dn - x r^3 / head_dim * sum(w dn x),  dw += dn x r
//   without one:  dx = dn
// A value head gives dx = dy. Each dx is rounded to what is stored once. The bias' gradient is the sum of dx over the
// rows (column_sums.h).
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_ATTENTION_INPUTS_GRADIENT_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_ATTENTION_INPUTS_GRADIENT_H_

#include "core/kernels/attention_inputs.h"
#include "core/kernels/training/norm_gradient.h"

namespace warpsmith {

// T is what is stored: bfloat16 or float on a device; float in the reference, with values that `stored` has. All arrays
// are dense. Of `forward`, kv_entries, queries and pages are not used.
template <typename T>
struct AttentionInputsGradient {
  AttentionInputs<T> forward;
  const T* query_grad = nullptr;     // [rows, num_kv_heads * group_size, head_dim]
  const T* key_grad = nullptr;       // [rows, num_kv_heads, head_dim]
  const T* value_grad = nullptr;     // [rows, num_kv_heads, head_dim]
  T* qkv_grad = nullptr;             // as forward.qkv, and may be it
  float* parts = nullptr;            // [NumGradientParts(rows), 2, head_dim]: scratch where there are norms
  float* query_norm_grad = nullptr;  // [head_dim]: added to; null without a norm
  float* key_norm_grad = nullptr;    // [head_dim]: added to; null without a norm
};

// Returns the first element of the gradient of a head of `row` that attention read.
template <typename T>
constexpr const T* HeadGradient(const AttentionInputsGradient<T>& gradient, HeadPlace place, int64_t row) {
  const AttentionInputs<T>& forward = gradient.forward;
  if (place.kind == HeadKind::kQuery) {
    return gradient.query_grad +
           (row * forward.num_kv_heads * forward.group_size + place.index) * forward.head_dim;
  }
  const T* const grads = place.kind == HeadKind::kKey ? gradient.key_grad : gradient.value_grad;
  return grads + (row * forward.num_kv_heads + place.index) * forward.head_dim;
}

// Computes by KernelSet::norm_rotate_gradient. REQUIRES: head_dim is even and at most 512.
void AttentionInputsGradientReference(const AttentionInputsGradient<float>& gradient,
                                      DeviceDtype stored = DeviceDtype::kBfloat16);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_ATTENTION_INPUTS_GRADIENT_H_
