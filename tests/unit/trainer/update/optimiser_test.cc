#include "trainer/update/optimiser.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/muon.h"
#include "tests/support/catch.h"
#include "tests/unit/trainer/policy_batch.h"

namespace warpsmith {
namespace {

// Every gradient element is `value`.
void FillGradients(Parameters& parameters, float value) {
  for (int i = 0; i < parameters.num_buffers(); ++i) {
    parameters.buffer(i).mutable_grad() = at::full_like(parameters.buffer(i).detach(), value);
  }
}

float FirstOf(const Parameters& parameters, int buffer, const std::string& entry) {
  return parameters.buffer(buffer).const_data_ptr<float>()[parameters.layout().entry(buffer, entry).offset];
}

// The tensor of the first layer that a checkpoint calls `name`.
const HfTensorLayout& TensorOf(const ParameterLayout& layout, const std::string& name) {
  const auto& tensors = layout.hf_tensors();
  return *std::find_if(tensors.begin(), tensors.end(),
                       [&](const HfTensorLayout& tensor) { return tensor.name == "model.layers.0." + name; });
}

}  // namespace

TEST_CASE("the first step moves every weight by the learning rate against its gradient") {
  Policy policy = MakePolicy(at::kFloat);
  Optimiser optimiser(policy.parameters.layout(), {.epsilon = 1e-12, .gradient_norm_max = 1e9}, nullptr);
  const float before = FirstOf(policy.parameters, 1, "qkv");
  FillGradients(policy.parameters, 0.5f);
  optimiser.Step(policy.parameters, 0.01);
  CHECK(FirstOf(policy.parameters, 1, "qkv") == Approx(before - 0.01).epsilon(1e-4));
  CHECK(optimiser.num_steps() == 1);
  CHECK_FALSE(policy.parameters.buffer(0).grad().defined());
}

TEST_CASE("the norm is global and is returned before clipping") {
  Policy policy = MakePolicy(at::kFloat);
  FillGradients(policy.parameters, 2.0f);
  int64_t count = 0;
  for (int i = 0; i < policy.parameters.num_buffers(); ++i) count += policy.parameters.buffer(i).numel();
  CHECK(policy.optimiser.Step(policy.parameters, 0.0) == Approx(2.0 * std::sqrt(static_cast<double>(count))));
}

TEST_CASE("matrices decay and norms do not") {
  Policy policy = MakePolicy(at::kFloat);
  Optimiser optimiser(policy.parameters.layout(), {.weight_decay = 0.5}, nullptr);
  const float matrix = FirstOf(policy.parameters, 1, "qkv"),
              norm = FirstOf(policy.parameters, 1, "input_norm");
  FillGradients(policy.parameters, 0.0f);
  optimiser.Step(policy.parameters, 0.1);
  CHECK(FirstOf(policy.parameters, 1, "qkv") == Approx(matrix * 0.95f));
  CHECK(FirstOf(policy.parameters, 1, "input_norm") == norm);
}

TEST_CASE("with Muon the matrices of layers move by one step size in every direction, the rest by AdamW") {
  Policy policy = MakePolicy(at::kFloat);
  Policy with_adamw = MakePolicy(at::kFloat);
  const float before = FirstOf(policy.parameters, 1, "qkv");
  FillGradients(policy.parameters, 0.5f);
  FillGradients(with_adamw.parameters, 0.5f);
  policy.optimiser.Step(policy.parameters, 0.01, MatrixUpdate::kMuon);
  with_adamw.optimiser.Step(with_adamw.parameters, 0.01);
  CHECK(policy.parameters.BufferBytes(0) == with_adamw.parameters.BufferBytes(0));
  CHECK(FirstOf(policy.parameters, 1, "input_norm") == FirstOf(with_adamw.parameters, 1, "input_norm"));
  // A matrix of equal gradients has one direction, of singular value about 1, spread over all elements.
  const std::vector<int64_t>& shape = TensorOf(policy.parameters.layout(), "self_attn.q_proj.weight").shape;
  const double largest = static_cast<double>(std::max(shape[0], shape[1]));
  const double moved = before - FirstOf(policy.parameters, 1, "qkv");
  const double unit = 0.01 * 0.2 * std::sqrt(largest) / std::sqrt(static_cast<double>(shape[0] * shape[1]));
  CHECK(moved > 0.6 * unit);
  CHECK(moved < 1.3 * unit);
}

TEST_CASE("Muon takes every matrix as a checkpoint has it, also those that are stored as one") {
  Policy policy = MakePolicy(at::kFloat);
  const ParameterLayout& layout = policy.parameters.layout();
  Optimiser optimiser(layout, {.gradient_norm_max = 1e9}, nullptr);
  const Parameters before = policy.parameters.Clone(at::kFloat);
  Parameters gradients(layout);
  gradients.InitRandom(5);
  for (int i = 0; i < layout.num_buffers(); ++i) {
    policy.parameters.buffer(i).mutable_grad() = gradients.buffer(i).clone();
  }
  optimiser.Step(policy.parameters, 0.01, MatrixUpdate::kMuon);
  for (const char* name :
       {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
        "self_attn.o_proj.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight"}) {
    INFO(name);
    const HfTensorLayout& tensor = TensorOf(layout, name);
    at::Tensor expected = before.HfTensor(tensor, at::kFloat).contiguous().clone();
    const at::Tensor gradient = gradients.HfTensor(tensor, at::kFloat).contiguous();
    at::Tensor moment = at::zeros_like(expected);
    std::vector<float> scratch;
    MuonStep({.learning_rate = 0.01f}, tensor.shape[0], tensor.shape[1], gradient.const_data_ptr<float>(),
             expected.mutable_data_ptr<float>(), moment.mutable_data_ptr<float>(), &scratch, nullptr);
    CHECK(at::allclose(policy.parameters.HfTensor(tensor, at::kFloat), expected, 0, 1e-6));
    CHECK(at::allclose(optimiser.first_moment().HfTensor(tensor, at::kFloat), moment, 0, 1e-6));
  }
}

TEST_CASE("a gradient that is not finite changes nothing") {
  Policy policy = MakePolicy(at::kFloat);
  const std::string before(policy.parameters.BufferBytes(1));
  FillGradients(policy.parameters, std::numeric_limits<float>::infinity());
  CHECK_FALSE(std::isfinite(policy.optimiser.Step(policy.parameters, 0.1)));
  CHECK(policy.parameters.BufferBytes(1) == before);
  CHECK(policy.optimiser.num_steps() == 0);
}

}  // namespace warpsmith
