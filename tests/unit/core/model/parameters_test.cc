#include "core/model/parameters.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

Parameters Initialised(const ModelConfig& config, uint64_t seed) {
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(seed);
  return parameters;
}

TEST_CASE("export to Hugging Face names and import restore every bit") {
  for (const bool tied : {true, false}) {
    ModelConfig config = OddConfig();
    config.tie_word_embeddings = tied;
    const Parameters from = Initialised(config, 5);
    Parameters to{ParameterLayout(config)};
    REQUIRE(to.FromHf(from.ToHf(at::kFloat)).ok());
    for (int i = 0; i < from.num_buffers(); ++i) CHECK(at::equal(from.buffer(i), to.buffer(i)));
    CHECK(from.ToHf(at::kFloat).count("lm_head.weight") == (tied ? 0 : 1));
  }
}

TEST_CASE("a row of the fused projection is the row of its Hugging Face tensor") {
  const Parameters parameters = Initialised(OddConfig(), 5);
  const auto tensors = parameters.ToHf(at::kFloat);
  const at::Tensor qkv = parameters.View(1, "qkv"), gate_up = parameters.View(1, "gate_up");
  CHECK(at::equal(qkv[100 + 7], tensors.at("model.layers.0.self_attn.q_proj.weight")[60 + 7]));
  CHECK(at::equal(qkv[60 + 7], tensors.at("model.layers.0.self_attn.k_proj.weight")[7]));
  CHECK(at::equal(qkv[180 + 7], tensors.at("model.layers.0.self_attn.v_proj.weight")[20 + 7]));
  CHECK(at::equal(gate_up[32 + 3], tensors.at("model.layers.0.mlp.gate_proj.weight")[16 + 3]));
  CHECK(at::equal(gate_up[48 + 3], tensors.at("model.layers.0.mlp.up_proj.weight")[16 + 3]));
}

TEST_CASE("random weights depend on the seed, have the stated deviation, and leave padding zero") {
  const Parameters a = Initialised(DemoConfig(), 1), b = Initialised(DemoConfig(), 1),
                   c = Initialised(DemoConfig(), 2);
  CHECK(at::equal(a.buffer(2), b.buffer(2)));
  CHECK_FALSE(at::equal(a.buffer(2), c.buffer(2)));
  CHECK(a.View(0, "embedding").std().item<double>() == Approx(0.02).epsilon(0.02));
  CHECK(a.View(1, "down").std().item<double>() == Approx(0.02 / std::sqrt(8.0)).epsilon(0.02));
  CHECK(a.View(1, "query_norm").sum().item<double>() == 32.0);
  CHECK(a.buffer(a.num_buffers() - 1).sum().item<double>() == 128.0);
}

TEST_CASE("a checkpoint that does not fit is refused by the tensor's name") {
  Parameters parameters = Initialised(OddConfig(), 5);
  auto tensors = parameters.ToHf(at::kFloat);
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  CHECK(parameters.FromHf(tensors).ok());
  tensors["extra"] = at::zeros({1});
  CHECK(parameters.FromHf(tensors).message() ==
        "checkpoint has a tensor that a Qwen3ForCausalLM of 2 layers lacks: extra");
  tensors.erase("extra");
  tensors["model.norm.weight"] = at::zeros({41});
  CHECK(parameters.FromHf(tensors).message() ==
        "tensor model.norm.weight has shape [41], but the configuration wants [40]");
  tensors.erase("model.norm.weight");
  CHECK(parameters.FromHf(tensors).message() ==
        "checkpoint lacks the tensor model.norm.weight of a Qwen3ForCausalLM");
}

TEST_CASE("bytes of a buffer can be taken and put back, whole ones only") {
  const Parameters from = Initialised(OddConfig(), 5);
  Parameters to{ParameterLayout(OddConfig())};
  for (int i = 0; i < from.num_buffers(); ++i) {
    REQUIRE(to.SetBufferBytes(i, from.BufferBytes(i)).ok());
    CHECK(at::equal(from.buffer(i), to.buffer(i)));
  }
  CHECK(to.SetBufferBytes(0, from.BufferBytes(0).substr(4)).code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace warpsmith
