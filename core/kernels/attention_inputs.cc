#include "core/kernels/attention_inputs.h"

#include <algorithm>
#include <vector>

#include "core/kernels/kernel_set.h"

namespace warpsmith {
namespace {

void RotateHead(const AttentionInputs<float>& inputs, const float* head, const float* norm, int64_t row,
                float* to) {
  const int64_t at = inputs.positions[row] * (inputs.head_dim / 2);
  Kernels<float>().norm_rotate(head, norm, inputs.cosines + at, inputs.sines + at, inputs.head_dim,
                               inputs.eps, to);
}

}  // namespace

void AttentionInputsReference(const AttentionInputs<float>& inputs, DeviceDtype stored) {
  const int64_t heads = HeadsOfRow(inputs), size = inputs.head_dim;
  std::vector<float> biased(size);
  for (int64_t i = 0; i < inputs.rows * heads; ++i) {
    const int64_t row = i / heads, head = i % heads;
    for (int64_t d = 0; d < size; ++d) {
      biased[d] = inputs.qkv[i * size + d] + (inputs.bias == nullptr ? 0.0f : inputs.bias[head * size + d]);
    }
    const HeadPlace place = PlaceOfHead(head, inputs.group_size);
    float* const to = DestinationOf(inputs, place, row);
    if (place.kind == HeadKind::kValue) {
      std::copy_n(biased.data(), size, to);
    } else {
      const float* const norm = place.kind == HeadKind::kQuery ? inputs.query_norm : inputs.key_norm;
      RotateHead(inputs, biased.data(), norm, row, to);
    }
    for (int64_t d = 0; d < size; ++d) to[d] = RoundToDtype(to[d], stored);
  }
}

}  // namespace warpsmith
