// The same decoder out of at:: operators under plain autograd: for devices without kernels of ours, and as
// the reference that the kernels are tested against. Shapes as in training_model.h.
//
// It shares no arithmetic with the kernels but the two ends of yarn's ramp.
//
// In bfloat16 it rounds where transformers does: norms, angles and log-probabilities are computed in float32;
// what a norm divided, cosines and sines are rounded to bfloat16, and so is the result of every other
// operator. In float32 and float64 all is computed in the parameters' dtype.
//
// Source: transformers, modeling_rope_utils.py and models/{qwen3,qwen2,llama}/modeling_*.py.
#ifndef WARPSMITH_CORE_MODEL_OPERATOR_MODEL_H_
#define WARPSMITH_CORE_MODEL_OPERATOR_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/model/packed_batch.h"
#include "core/model/parameters.h"
#include "core/model/token_scores.h"

namespace warpsmith {

// w * x / sqrt(mean(x^2) + eps) over the last dimension.
at::Tensor OperatorRmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps);

// A layer's output [T, D] from its input x [T, D]; `positions` [T] are the batch's.
at::Tensor OperatorLayer(const Parameters& parameters, int buffer, const at::Tensor& x,
                         const at::Tensor& positions, const PackedBatch& batch);

// Hidden states [T, D] from the last layer's output.
at::Tensor OperatorFinalNorm(const Parameters& parameters, const at::Tensor& x);

// Hidden states [T, D] after the final norm.
at::Tensor OperatorForward(const Parameters& parameters, const PackedBatch& batch);

// Queries [T, H, h] and keys [T, K, h], both rotated and normed before where the model does, and values [T, K, h] of
// a layer from its input x [T, D].
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

// The embedding's rows [n, D].
at::Tensor OperatorEmbedding(const Parameters& parameters, const at::Tensor& tokens);

// Logits [n, V] from hidden states [n, D].
at::Tensor OperatorLogits(const Parameters& parameters, const at::Tensor& hidden);

// Log-probabilities and entropies [n] of `targets` under `logits`, as TrainingModel::TokenLogProbs returns them; in
// float32 at least.
TokenScores OperatorScores(const at::Tensor& logits, const std::vector<int64_t>& targets, double temperature);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_OPERATOR_MODEL_H_
