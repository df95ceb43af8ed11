// The same decoder out of at:: operators under plain autograd: for devices without kernels of ours, and as
// the reference that the kernels are tested against. Shapes as in qwen3.h.
#ifndef WARPSMITH_CORE_MODEL_OPERATOR_MODEL_H_
#define WARPSMITH_CORE_MODEL_OPERATOR_MODEL_H_

#include <ATen/core/Tensor.h>

#include "core/model/packed_batch.h"
#include "core/model/parameters.h"

namespace warpsmith {

// x * w / sqrt(mean(x^2) + eps) over the last dimension.
at::Tensor OperatorRmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps);

// Hidden states [T, D] after the final norm.
at::Tensor OperatorForward(const Parameters& parameters, const PackedBatch& batch);

// Queries [T, H, h], keys [T, K, h] (both normed and rotated) and values [T, K, h] of a layer from its input
// x [T, D].
struct QueryKeyValue {
  at::Tensor query, key, value;
};
QueryKeyValue OperatorQueryKeyValue(const Parameters& parameters, int buffer, const at::Tensor& x,
                                    const at::Tensor& positions);

// The rest of a layer from its input and the attended values [T, H * h].
at::Tensor OperatorAfterAttention(const Parameters& parameters, int buffer, const at::Tensor& x,
                                  const at::Tensor& attended);

// Attention of the queries [n, H, h], the last n of the m keys and values [m, K, h]; result [n, H * h].
at::Tensor OperatorAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

// The embedding's rows, and the weights [V, D] that make logits: the embedding where tied.
at::Tensor OperatorEmbedding(const Parameters& parameters, const at::Tensor& tokens);
at::Tensor HeadWeight(const Parameters& parameters);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_OPERATOR_MODEL_H_
