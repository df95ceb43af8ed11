// The model against transformers: a checkpoint written from our parameters gives the same logits and the same
// greedy text.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/sub.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/build_info.h"
#include "core/base/file.h"
#include "core/model/decoder.h"
#include "core/model/operator_model.h"
#include "core/model/qwen3.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

// The format of huggingface.co/docs/safetensors: length of the header, header, bytes.
std::string Safetensors(const std::map<std::string, at::Tensor>& tensors) {
  Json header;
  std::string bytes;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = bytes.size();
    bytes.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
    header[name] = {
        {"dtype", "F32"}, {"shape", tensor.sizes().vec()}, {"data_offsets", {begin, bytes.size()}}};
  }
  header["__metadata__"] = {{"format", "pt"}};
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + bytes;
}

// Large enough weights that tokens differ by far more than rounding, norms away from 1.
Parameters LivelyParameters(const ModelConfig& config) {
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(8);
  std::map<std::string, at::Tensor> tensors = parameters.ToHf(at::kFloat);
  for (auto& [name, tensor] : tensors) {
    if (tensor.dim() == 2) {
      tensor.mul_(4.0);
      continue;
    }
    for (int64_t i = 0; i < tensor.size(0); ++i) tensor[i].fill_(0.5 + UniformDouble(name.size(), i));
  }
  REQUIRE(parameters.FromHf(tensors).ok());
  return parameters;
}

std::vector<int64_t> Greedy(Decoder& decoder, const ModelConfig& config, const std::vector<int64_t>& prompt,
                            size_t count) {
  KvCache cache = decoder.MakeCache(1, 256);
  std::vector<StepSequence> step = {{0, 0, {prompt.begin(), prompt.end()}}};
  std::vector<int64_t> tokens;
  while (tokens.size() < count) {
    const at::Tensor logits = decoder.Step(step, cache).value();
    const float* row = logits.const_data_ptr<float>();
    tokens.push_back(std::max_element(row, row + config.vocab_size) - row);
    step[0].first_position += static_cast<int64_t>(step[0].token_ids.size());
    step[0].token_ids = {static_cast<int32_t>(tokens.back())};
  }
  return tokens;
}

void WriteCheckpoint(const TemporaryDirectory& folder, const Parameters& parameters, const Json& prompts) {
  REQUIRE(WriteFileAtomically(folder.path() / "config.json", WriteModelConfig(parameters.config())).ok());
  REQUIRE(WriteFileAtomically(folder.path() / "model.safetensors", Safetensors(parameters.ToHf(at::kFloat)))
              .ok());
  REQUIRE(WriteFileAtomically(folder.path() / "prompts.json", prompts.dump()).ok());
}

std::vector<std::vector<int64_t>> RandomPrompts(const ModelConfig& config,
                                                const std::vector<int64_t>& lengths) {
  std::vector<std::vector<int64_t>> prompts;
  for (const int64_t length : lengths) prompts.push_back(RandomTokens(config, length, 40 + length));
  return prompts;
}

// Leaves logits.bin and greedy.json in `folder`.
void RunTransformers(const TemporaryDirectory& folder, const std::string& dtype) {
  const std::string command = GetBuildInfo().python + " -B tests/integration/transformers_qwen3.py " +
                              folder.path().string() + " " + dtype;
  REQUIRE(std::system(command.c_str()) == 0);
}

void CompareWithTransformers(const ModelConfig& config) {
  const Parameters parameters = LivelyParameters(config);
  const std::vector<std::vector<int64_t>> prompts = RandomPrompts(config, {1, 37, 100});
  const TemporaryDirectory folder;
  WriteCheckpoint(folder, parameters, prompts);
  RunTransformers(folder, "float32");

  const at::NoGradGuard no_grad;
  PackedBatch batch;
  for (const auto& prompt : prompts) batch.Append(prompt);
  const Qwen3 model = Qwen3::Create(config, Backend::kKernels).value();
  const at::Tensor logits = model.Logits(parameters, model.Forward(parameters, batch));
  std::string bytes = ReadFile(folder.path() / "logits.bin").value();
  REQUIRE(bytes.size() == logits.nbytes());
  const at::Tensor expected = at::from_blob(bytes.data(), logits.sizes(), at::TensorOptions(at::kFloat));
  CHECK(at::sub(logits, expected).abs().max().item<float>() < 1e-4f);
  CHECK(expected.abs().max().item<float>() > 0.5f);

  Decoder decoder = Decoder::Create(config, Backend::kKernels).value();
  REQUIRE(decoder.SetParameters(parameters).ok());
  const Json greedy = Json::parse(ReadFile(folder.path() / "greedy.json").value());
  for (size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<int64_t> theirs = greedy[i];
    CHECK(Greedy(decoder, config, prompts[i], theirs.size()) == theirs);
  }
}

TEST_CASE("logits and greedy text equal those of transformers with tied embeddings") {
  CompareWithTransformers(DemoConfig());
}

TEST_CASE("logits and greedy text equal those of transformers with a head of its own and odd sizes") {
  ModelConfig config = OddConfig();
  config.tie_word_embeddings = false;
  config.rope_theta = 1e6;
  CompareWithTransformers(config);
}

TEST_CASE("the operators round to bfloat16 where transformers does") {
  const ModelConfig config = DemoConfig();
  const Parameters parameters = LivelyParameters(config).Clone(at::kBFloat16);
  const std::vector<std::vector<int64_t>> prompts = RandomPrompts(config, {700});
  const TemporaryDirectory folder;
  WriteCheckpoint(folder, parameters, prompts);
  RunTransformers(folder, "bfloat16");

  const at::NoGradGuard no_grad;
  PackedBatch batch;
  batch.Append(prompts[0]);
  const auto logits = [&](const Parameters& weights) {
    return OperatorLogits(weights, OperatorForward(weights, batch)).to(at::kDouble);
  };
  std::string bytes = ReadFile(folder.path() / "logits.bin").value();
  const at::Tensor theirs =
      at::from_blob(bytes.data(), {700, config.vocab_size}, at::TensorOptions(at::kFloat)).to(at::kDouble);
  const at::Tensor ours = logits(parameters), exact = logits(parameters.Clone(at::kDouble));
  // Equal to the bit where products add in the same order, which the libraries do not promise. A rounding
  // that one of the two leaves out moves the logits by about the rounding error itself.
  const double difference = ((ours - theirs).norm() / exact.norm()).item<double>();
  const double rounding = ((theirs - exact).norm() / exact.norm()).item<double>();
  INFO("ours to theirs " << difference << ", theirs to float64 " << rounding);
  CHECK(rounding > 0);
  CHECK(difference < rounding / 8);
}

TEST_CASE("a configuration that transformers wrote is read as it was meant") {
  const TemporaryDirectory folder;
  const std::string path = (folder.path() / "config.json").string();
  const std::string command =
      GetBuildInfo().python +
      " -c \"from transformers import Qwen3Config; Qwen3Config(vocab_size=99, hidden_size=64, "
      "intermediate_size=128,"
      " num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32, rope_theta=5e5,"
      " tie_word_embeddings=True, architectures=['Qwen3ForCausalLM']).save_pretrained('" +
      folder.path().string() + "')\"";
  REQUIRE(std::system(command.c_str()) == 0);
  const absl::StatusOr<ModelConfig> config = ParseModelConfig(ReadFile(path).value());
  INFO(config.status().message());
  REQUIRE(config.ok());
  CHECK(config->vocab_size == 99);
  CHECK(config->head_dim == 32);
  CHECK(config->tie_word_embeddings);
  CHECK(config->rms_norm_eps == 1e-6);
  CHECK(config->max_position_embeddings == 32768);
  CHECK(config->num_key_value_heads == 2);
}

}  // namespace
}  // namespace warpsmith
