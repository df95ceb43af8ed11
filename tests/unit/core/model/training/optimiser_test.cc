#include "core/model/training/optimiser.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "core/kernels/muon.h"
#include "tests/support/catch.h"
#include "tests/unit/core/model/training/pass_fixture.h"

namespace warpsmith {
namespace {

Parameters SmallModel() { return RandomParameters(FamilyConfigs().front().config, at::kFloat); }

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
  Parameters parameters = SmallModel();
  Optimiser optimiser(parameters.layout(), {.epsilon = 1e-12}, nullptr);
  const float before = FirstOf(parameters, 1, "qkv");
  FillGradients(parameters, 0.5f);
  optimiser.Update(parameters, {.learning_rate = 0.01});
  CHECK(FirstOf(parameters, 1, "qkv") == Approx(before - 0.01).epsilon(1e-4));
}

TEST_CASE("matrices decay and norms do not") {
  Parameters parameters = SmallModel();
  Optimiser optimiser(parameters.layout(), {.weight_decay = 0.5}, nullptr);
  const float matrix = FirstOf(parameters, 1, "qkv"), norm = FirstOf(parameters, 1, "input_norm");
  FillGradients(parameters, 0.0f);
  optimiser.Update(parameters, {.learning_rate = 0.1});
  CHECK(FirstOf(parameters, 1, "qkv") == Approx(matrix * 0.95f));
  CHECK(FirstOf(parameters, 1, "input_norm") == norm);
}

TEST_CASE("with Muon the matrices of layers move by one step size in every direction, the rest by AdamW") {
  Parameters parameters = SmallModel(), with_adamw = SmallModel();
  Optimiser muon(parameters.layout(), {}, nullptr), adamw(parameters.layout(), {}, nullptr);
  const float before = FirstOf(parameters, 1, "qkv");
  FillGradients(parameters, 0.5f);
  FillGradients(with_adamw, 0.5f);
  muon.Update(parameters, {.learning_rate = 0.01, .matrices = MatrixUpdate::kMuon});
  adamw.Update(with_adamw, {.learning_rate = 0.01});
  CHECK(parameters.BufferBytes(0) == with_adamw.BufferBytes(0));
  CHECK(FirstOf(parameters, 1, "input_norm") == FirstOf(with_adamw, 1, "input_norm"));
  // A matrix of equal gradients has one direction, of singular value about 1, spread over all elements.
  const std::vector<int64_t>& shape = TensorOf(parameters.layout(), "self_attn.q_proj.weight").shape;
  const double largest = static_cast<double>(std::max(shape[0], shape[1]));
  const double moved = before - FirstOf(parameters, 1, "qkv");
  const double unit = 0.01 * 0.2 * std::sqrt(largest) / std::sqrt(static_cast<double>(shape[0] * shape[1]));
  CHECK(moved > 0.6 * unit);
  CHECK(moved < 1.3 * unit);
}

TEST_CASE("Muon takes every matrix as a checkpoint has it, also those that are stored as one") {
  Parameters parameters = SmallModel();
  const ParameterLayout& layout = parameters.layout();
  Optimiser optimiser(layout, {}, nullptr);
  const Parameters before = parameters.Clone(at::kFloat);
  Parameters gradients(layout);
  gradients.InitRandom(5);
  for (int i = 0; i < layout.num_buffers(); ++i) {
    parameters.buffer(i).mutable_grad() = gradients.buffer(i).clone();
  }
  optimiser.Update(parameters, {.learning_rate = 0.01, .matrices = MatrixUpdate::kMuon});
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
    CHECK(at::allclose(parameters.HfTensor(tensor, at::kFloat), expected, 0, 1e-6));
    CHECK(at::allclose(optimiser.first_moment().HfTensor(tensor, at::kFloat), moment, 0, 1e-6));
  }
}

}  // namespace warpsmith
