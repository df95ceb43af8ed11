#include "core/model/operator_model.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace warpsmith {
namespace {

// float32 for bfloat16, else the dtype of x. bfloat16 has 8 bits: it tells neither position 257 from 256 nor
// the squares of neighbours apart.
at::ScalarType WideDtype(const at::Tensor& x) { return at::toOpMathType(x.scalar_type()); }

// x [T, heads, h] rotated by the angles of `positions`.
at::Tensor Rotate(const at::Tensor& x, const at::Tensor& positions, double theta) {
  const int64_t half = x.size(-1) / 2;
  const at::Tensor exponent =
      at::arange(half, x.options().dtype(WideDtype(x))) * 2.0 / static_cast<double>(x.size(-1));
  const at::Tensor frequencies = at::pow(at::Scalar(theta), exponent).reciprocal();
  const at::Tensor angles = at::outer(positions.to(WideDtype(x)), frequencies).unsqueeze(1);
  const at::Tensor cosine = angles.cos().to(x.scalar_type()), sine = angles.sin().to(x.scalar_type());
  const at::Tensor low = x.narrow(-1, 0, half), high = x.narrow(-1, half, half);
  return at::cat({low * cosine - high * sine, high * cosine + low * sine}, -1);
}

at::Tensor Indices(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::TensorOptions(at::kLong)).to(device);
}

}  // namespace

at::Tensor OperatorRmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor wide = x.to(WideDtype(x));
  return weight * (wide * at::rsqrt(wide.pow(2).mean(-1, true) + eps)).to(x.scalar_type());
}

at::Tensor OperatorEmbedding(const Parameters& parameters, const at::Tensor& tokens) {
  return at::embedding(parameters.View(parameters.layout().embedding_buffer(), "embedding"), tokens);
}

at::Tensor OperatorLogits(const Parameters& parameters, const at::Tensor& hidden) {
  const ParameterLayout& layout = parameters.layout();
  const bool tied = parameters.config().tie_word_embeddings;
  return at::linear(hidden, tied ? parameters.View(layout.embedding_buffer(), "embedding")
                                 : parameters.View(layout.final_buffer(), "head"));
}

TokenScores OperatorScores(const at::Tensor& logits, const std::vector<int64_t>& targets,
                           double temperature) {
  const at::Tensor target = Indices(targets, logits.device());
  const at::Tensor log_softmax = at::log_softmax(logits.to(WideDtype(logits)) / temperature, -1);
  const at::Tensor kept = target >= 0;
  const at::Tensor log_probs = log_softmax.gather(1, target.clamp_min(0).unsqueeze(1)).squeeze(1);
  const at::Tensor entropy = -(log_softmax.exp() * log_softmax).sum(-1).detach();
  return {at::where(kept, log_probs, at::zeros_like(log_probs)),
          at::where(kept, entropy, at::zeros_like(entropy))};
}

QueryKeyValue OperatorQueryKeyValue(const Parameters& parameters, int buffer, const at::Tensor& x,
                                    const at::Tensor& positions) {
  const ModelConfig& c = parameters.config();
  const int64_t group = c.group_size(), h = c.head_dim;
  const at::Tensor normed = OperatorRmsNorm(x, parameters.View(buffer, "input_norm"), c.rms_norm_eps);
  const at::Tensor qkv =
      at::linear(normed, parameters.View(buffer, "qkv")).view({-1, c.num_key_value_heads, group + 2, h});
  const at::Tensor query = qkv.narrow(2, 0, group).reshape({-1, c.num_attention_heads, h});
  const at::Tensor query_norm = parameters.View(buffer, "query_norm"),
                   key_norm = parameters.View(buffer, "key_norm");
  return {Rotate(OperatorRmsNorm(query, query_norm, c.rms_norm_eps), positions, c.rope_theta),
          Rotate(OperatorRmsNorm(qkv.select(2, group), key_norm, c.rms_norm_eps), positions, c.rope_theta),
          qkv.select(2, group + 1)};
}

at::Tensor OperatorAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const int64_t n = query.size(0), m = key.size(0), group = query.size(1) / key.size(1);
  const at::Tensor visible = at::ones({n, m}, query.options().dtype(at::kBool)).tril(m - n);
  const auto heads_first = [](const at::Tensor& x) { return x.transpose(0, 1).unsqueeze(0); };
  const at::Tensor out =
      at::scaled_dot_product_attention(heads_first(query), heads_first(key.repeat_interleave(group, 1)),
                                       heads_first(value.repeat_interleave(group, 1)), visible);
  return out.squeeze(0).transpose(0, 1).reshape({n, -1});
}

at::Tensor OperatorAfterAttention(const Parameters& parameters, int buffer, const at::Tensor& x,
                                  const at::Tensor& attended) {
  const ModelConfig& c = parameters.config();
  const at::Tensor middle = x + at::linear(attended, parameters.View(buffer, "output"));
  const at::Tensor normed = OperatorRmsNorm(middle, parameters.View(buffer, "post_norm"), c.rms_norm_eps);
  const at::Tensor gate_up = at::linear(normed, parameters.View(buffer, "gate_up"))
                                 .view({-1, c.intermediate_size / kGateUpBlock, 2, kGateUpBlock});
  const at::Tensor activated = at::silu(gate_up.select(2, 0)) * gate_up.select(2, 1);
  return middle + at::linear(activated.reshape({-1, c.intermediate_size}), parameters.View(buffer, "down"));
}

at::Tensor OperatorForward(const Parameters& parameters, const PackedBatch& batch) {
  const ParameterLayout& layout = parameters.layout();
  const at::Tensor positions = Indices(batch.positions, parameters.device());
  at::Tensor x = OperatorEmbedding(parameters, Indices(batch.tokens, parameters.device()));
  for (int64_t layer = 0; layer < parameters.config().num_hidden_layers; ++layer) {
    const int buffer = layout.layer_buffer(layer);
    const QueryKeyValue all = OperatorQueryKeyValue(parameters, buffer, x, positions);
    std::vector<at::Tensor> attended;
    for (int64_t b = 0; b < batch.num_sequences(); ++b) {
      const int64_t first = batch.cu_seqlens[b], length = batch.cu_seqlens[b + 1] - first;
      attended.push_back(OperatorAttention(all.query.narrow(0, first, length),
                                           all.key.narrow(0, first, length),
                                           all.value.narrow(0, first, length)));
    }
    x = OperatorAfterAttention(parameters, buffer, x, at::cat(attended, 0));
  }
  return OperatorRmsNorm(x, parameters.View(layout.final_buffer(), "norm"), parameters.config().rms_norm_eps);
}

}  // namespace warpsmith
