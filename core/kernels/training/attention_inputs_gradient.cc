#include "core/kernels/training/attention_inputs_gradient.h"

#include <algorithm>
#include <vector>

#include "core/kernels/kernel_set.h"

namespace warpsmith {

void AttentionInputsGradientReference(const AttentionInputsGradient<float>& gradient, DeviceDtype stored) {
  const AttentionInputs<float>& f = gradient.forward;
  const int64_t heads = HeadsOfRow(f), size = f.head_dim;
  std::vector<float> x(size), x_grad(size);
  for (int64_t i = 0; i < f.rows * heads; ++i) {
    const int64_t row = i / heads, head = i % heads;
    for (int64_t d = 0; d < size; ++d) {
      x[d] = f.qkv[i * size + d] + (f.bias == nullptr ? 0.0f : f.bias[head * size + d]);
    }
    const HeadPlace place = PlaceOfHead(head, f.group_size);
    const float* const y_grad = HeadGradient(gradient, place, row);
    if (place.kind == HeadKind::kValue) {
      std::copy_n(y_grad, size, x_grad.data());
    } else {
      const bool is_query = place.kind == HeadKind::kQuery;
      const int64_t at = f.positions[row] * (size / 2);
      Kernels<float>().norm_rotate_gradient(x.data(), is_query ? f.query_norm : f.key_norm, f.cosines + at,
                                            f.sines + at, y_grad, size, f.eps, x_grad.data(),
                                            is_query ? gradient.query_norm_grad : gradient.key_norm_grad);
    }
    for (int64_t d = 0; d < size; ++d) gradient.qkv_grad[i * size + d] = RoundToDtype(x_grad[d], stored);
  }
}

}  // namespace warpsmith
