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

constexpr double kTwoPi = 6.283185307179586;

// float32 for bfloat16, else the dtype of x. bfloat16 has 8 bits: it tells neither position 257 from 256 nor
// the squares of neighbours apart.
at::ScalarType WideDtype(const at::Tensor& x) { return at::toOpMathType(x.scalar_type()); }

// The formulas of rope_scaling.h for the angles [h / 2] a position, in the order in which transformers rounds.
at::Tensor Frequencies(const ModelConfig& c, const at::TensorOptions& options) {
  const RopeScaling& rope = c.rope_scaling;
  const at::Tensor pair = at::arange(c.head_dim / 2, options);
  const at::Tensor power = at::pow(at::Scalar(c.rope_theta), pair * 2.0 / static_cast<double>(c.head_dim));
  const at::Tensor plain = power.reciprocal();
  switch (rope.type) {
    case RopeType::kDefault:
      return plain;
    case RopeType::kLinear:
      return plain / rope.factor;
    case RopeType::kLlama3: {
      const at::Tensor turns = static_cast<double>(rope.original_max_position_embeddings) / (kTwoPi / plain);
      const at::Tensor kept =
          ((turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)).clamp(0, 1);
      return (1 - kept) * plain / rope.factor + kept * plain;
    }
    case RopeType::kYarn: {
      const YarnRamp ramp = YarnRampOf(rope, c.head_dim, c.rope_theta);
      const at::Tensor kept = 1 - ((pair - ramp.first) / (ramp.last - ramp.first)).clamp(0, 1);
      return (power * rope.factor).reciprocal() * (1 - kept) + plain * kept;
    }
  }
  return plain;
}

// x [T, heads, h] rotated by the angles of `positions`.
at::Tensor Rotate(const at::Tensor& x, const at::Tensor& positions, const ModelConfig& c) {
  const int64_t half = c.head_dim / 2;
  const at::Tensor frequencies = Frequencies(c, x.options().dtype(WideDtype(x)));
  const at::Tensor angles = at::outer(positions.to(WideDtype(x)), frequencies).unsqueeze(1);
  const double magnitude = c.rope_scaling.attention_factor;
  const at::Tensor cosine = (angles.cos() * magnitude).to(x.scalar_type());
  const at::Tensor sine = (angles.sin() * magnitude).to(x.scalar_type());
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
  const auto view = [&](const char* name) { return parameters.View(buffer, name); };
  const auto norm = [&](const at::Tensor& heads, const char* weight) {
    return c.qk_norm ? OperatorRmsNorm(heads, view(weight), c.rms_norm_eps) : heads;
  };
  const at::Tensor bias = c.qkv_bias ? view("qkv_bias") : at::Tensor();
  const at::Tensor normed = OperatorRmsNorm(x, view("input_norm"), c.rms_norm_eps);
  const at::Tensor qkv =
      at::linear(normed, view("qkv"), bias).view({-1, c.num_key_value_heads, group + 2, h});
  const at::Tensor query = qkv.narrow(2, 0, group).reshape({-1, c.num_attention_heads, h});
  return {Rotate(norm(query, "query_norm"), positions, c),
          Rotate(norm(qkv.select(2, group), "key_norm"), positions, c), qkv.select(2, group + 1)};
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

at::Tensor OperatorLayer(const Parameters& parameters, int buffer, const at::Tensor& x,
                         const at::Tensor& positions, const PackedBatch& batch) {
  const QueryKeyValue all = OperatorQueryKeyValue(parameters, buffer, x, positions);
  std::vector<at::Tensor> attended;
  for (int64_t b = 0; b < batch.num_sequences(); ++b) {
    const int64_t first = batch.cu_seqlens[b], length = batch.cu_seqlens[b + 1] - first;
    attended.push_back(OperatorAttention(all.query.narrow(0, first, length), all.key.narrow(0, first, length),
                                         all.value.narrow(0, first, length)));
  }
  return OperatorAfterAttention(parameters, buffer, x, at::cat(attended, 0));
}

at::Tensor OperatorFinalNorm(const Parameters& parameters, const at::Tensor& x) {
  return OperatorRmsNorm(x, parameters.View(parameters.layout().final_buffer(), "norm"),
                         parameters.config().rms_norm_eps);
}

at::Tensor OperatorForward(const Parameters& parameters, const PackedBatch& batch) {
  const at::Tensor positions = Indices(batch.positions, parameters.device());
  at::Tensor x = OperatorEmbedding(parameters, Indices(batch.tokens, parameters.device()));
  for (int64_t layer = 0; layer < parameters.config().num_hidden_layers; ++layer) {
    x = OperatorLayer(parameters, parameters.layout().layer_buffer(layer), x, positions, batch);
  }
  return OperatorFinalNorm(parameters, x);
}

}  // namespace warpsmith
