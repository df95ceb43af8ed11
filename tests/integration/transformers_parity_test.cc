// The models against transformers: a checkpoint written from our parameters gives the same logits and the same
// greedy text there, and comes back from there unchanged.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"
#include "core/base/file.h"
#include "core/checkpoint/tensor_directory.h"
#include "core/model/decoder.h"
#include "core/model/hugging_face_weights.h"
#include "core/model/operator_model.h"
#include "core/model/training/training_model.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

constexpr int64_t kShardBytesMax = 20000;

struct Prompt {
  std::vector<int64_t> tokens;
  int64_t first_position = 0;
  size_t new_tokens = 0;  // to append greedily
};

// Large enough weights that tokens differ by far more than rounding, norms away from 1 and biases from 0.
Parameters LivelyParameters(const ModelConfig& config) {
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(8);
  std::map<std::string, at::Tensor> tensors = parameters.ToHf(at::kFloat);
  for (auto& [name, tensor] : tensors) {
    if (tensor.dim() == 2) {
      tensor.mul_(4.0);
      continue;
    }
    const double lowest = name.find(".bias") == std::string::npos ? 0.5 : -0.5;
    for (int64_t i = 0; i < tensor.size(0); ++i) tensor[i].fill_(lowest + UniformDouble(name.size(), i));
  }
  REQUIRE(parameters.FromHf(tensors).ok());
  return parameters;
}

std::vector<int64_t> Greedy(Decoder& decoder, const ModelConfig& config, const std::vector<int64_t>& prompt,
                            size_t count) {
  KvCache cache = decoder.MakeCache(1, 512);
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

// A model that transformers ran: its prompts, and what was written to and from its folder.
struct Exported {
  std::string name;
  std::vector<Prompt> prompts;
  Parameters weights;
  std::filesystem::path folder;
};

void WriteCheckpoint(const Exported& model) {
  Json json = Json::array();
  for (const Prompt& prompt : model.prompts) {
    json.push_back({{"tokens", prompt.tokens},
                    {"first_position", prompt.first_position},
                    {"new_tokens", prompt.new_tokens}});
  }
  std::filesystem::create_directories(model.folder);
  const std::string config = WriteModelConfig(model.weights.config());
  REQUIRE(WriteFileAtomically(model.folder / "config.json", config).ok());
  REQUIRE(WriteFileAtomically(model.folder / "prompts.json", json.dump()).ok());
  REQUIRE(WriteTensorDirectory(model.folder, HuggingFaceTensors(model.weights.layout(), {}), kShardBytesMax,
                               HuggingFaceSource(model.weights))
              .ok());
}

// Leaves logits.bin, greedy.json and the folder `saved` in each model's folder below `root`.
std::vector<Exported> RunTransformers(const std::vector<NamedConfig>& configs, at::ScalarType dtype,
                                      std::vector<Prompt> (*prompts_of)(const ModelConfig&),
                                      const TemporaryDirectory& root) {
  const bool is_float = dtype == at::kFloat;
  std::string command = absl::StrCat(GetBuildInfo().python, " -B tests/integration/transformers_model.py ",
                                     is_float ? "float32" : "bfloat16");
  std::vector<Exported> models;
  for (const auto& [name, config] : configs) {
    models.push_back({name, prompts_of(config), LivelyParameters(config).Clone(dtype),
                      root.path() / absl::StrCat(models.size())});
    WriteCheckpoint(models.back());
    absl::StrAppend(&command, " ", models.back().folder.string());
  }
  REQUIRE(std::system(command.c_str()) == 0);
  return models;
}

// One after another, [all tokens, vocab_size].
at::Tensor TheirLogits(const Exported& model) {
  std::string bytes = ReadFile(model.folder / "logits.bin").value();
  const int64_t v = model.weights.config().vocab_size;
  const auto rows = static_cast<int64_t>(bytes.size() / sizeof(float)) / v;
  return at::from_blob(bytes.data(), {rows, v}, at::TensorOptions(at::kFloat)).clone();
}

PackedBatch BatchOf(const std::vector<Prompt>& prompts) {
  PackedBatch batch;
  for (const Prompt& prompt : prompts) {
    const size_t first = batch.positions.size();
    batch.Append(prompt.tokens);
    for (size_t i = first; i < batch.positions.size(); ++i) batch.positions[i] += prompt.first_position;
  }
  return batch;
}

at::Tensor KernelLogits(const Parameters& parameters, const PackedBatch& batch) {
  const TrainingModel model = TrainingModel::Create(parameters.config(), Backend::kKernels).value();
  return model.Logits(parameters, batch);
}

at::Tensor ExactLogits(const Parameters& parameters, const PackedBatch& batch) {
  const Parameters exact = parameters.Clone(at::kDouble);
  return OperatorLogits(exact, OperatorForward(exact, batch));
}

double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

void CheckGreedy(const Exported& model) {
  const ModelConfig& config = model.weights.config();
  Decoder decoder = Decoder::Create(config, Backend::kKernels).value();
  REQUIRE(decoder.SetParameters(model.weights).ok());
  const Json greedy = Json::parse(ReadFile(model.folder / "greedy.json").value());
  size_t next = 0;
  for (const Prompt& prompt : model.prompts) {
    if (prompt.new_tokens == 0) continue;
    const std::vector<int64_t> theirs = greedy.at(next++);
    CHECK(theirs.size() == prompt.new_tokens);
    CHECK(Greedy(decoder, config, prompt.tokens, prompt.new_tokens) == theirs);
  }
}

// What transformers saved, in its own shards, is what it was given.
void CheckSaved(const Exported& model) {
  const std::filesystem::path saved = model.folder / "saved";
  CHECK(std::filesystem::exists(saved / "model.safetensors.index.json"));
  const absl::StatusOr<ModelConfig> config = LoadModelConfig(saved);
  INFO(config.status().message());
  REQUIRE(config.ok());
  CHECK((*config == model.weights.config()));
  Parameters read{ParameterLayout(*config)};
  const absl::Status status = LoadHuggingFaceWeights(saved, read);
  INFO(status.message());
  REQUIRE(status.ok());
  for (int i = 0; i < read.num_buffers(); ++i) CHECK(at::equal(read.buffer(i), model.weights.buffer(i)));
}

TEST_CASE("logits, greedy text and checkpoints of every architecture are those of transformers") {
  std::vector<NamedConfig> configs = FamilyConfigs();
  configs.push_back({"the demo's", DemoConfig()});
  const auto prompts_of = [](const ModelConfig& config) {
    return std::vector<Prompt>{{.tokens = RandomTokens(config, 1, 41)},
                               {.tokens = RandomTokens(config, 37, 42), .new_tokens = 200},
                               {.tokens = RandomTokens(config, 5 * kFirstTrainedPositions, 43)}};
  };
  const TemporaryDirectory root;
  const at::NoGradGuard no_grad;
  for (const Exported& model : RunTransformers(configs, at::kFloat, prompts_of, root)) {
    INFO(model.name);
    const at::Tensor theirs = TheirLogits(model);
    CHECK(LargestDifference(KernelLogits(model.weights, BatchOf(model.prompts)), theirs) < 1e-4);
    CHECK(theirs.abs().max().item<float>() > 0.5f);
    CheckGreedy(model);
    CheckSaved(model);
  }
}

TEST_CASE("far positions are rotated as transformers rotates them, by every scaling") {
  const auto prompts_of = [](const ModelConfig& config) {
    return std::vector<Prompt>{{.tokens = RandomTokens(config, 90, 44), .first_position = 100000}};
  };
  const TemporaryDirectory root;
  const at::NoGradGuard no_grad;
  for (const Exported& model : RunTransformers(FamilyConfigs(), at::kFloat, prompts_of, root)) {
    const PackedBatch batch = BatchOf(model.prompts);
    const at::Tensor theirs = TheirLogits(model), ours = KernelLogits(model.weights, batch);
    // Angles of 100000 are rounded to 2^-7: what is within 1e-4 was rounded to the same numbers.
    INFO(model.name << ": theirs to float64 "
                    << LargestDifference(theirs, ExactLogits(model.weights, batch)));
    CHECK(LargestDifference(ours, theirs) < 1e-4);
  }
}

TEST_CASE("the operators round to bfloat16 where transformers does, for every architecture") {
  // Sizes at which the libraries' products add in one order; else the order alone is as much as a rounding.
  std::vector<NamedConfig> configs = {
      {"Qwen3", DemoConfig()}, {"Qwen2", DemoConfig()}, {"Llama", DemoConfig()}};
  configs[1].config.qkv_bias = true;
  configs[1].config.rope_scaling = YarnScaling();
  configs[2].config.rope_scaling = Llama3Scaling();
  configs[1].config.qk_norm = configs[2].config.qk_norm = false;
  const auto prompts_of = [](const ModelConfig& config) {
    return std::vector<Prompt>{{.tokens = RandomTokens(config, 700, 740)}};
  };
  const TemporaryDirectory root;
  const at::NoGradGuard no_grad;
  for (const Exported& model : RunTransformers(configs, at::kBFloat16, prompts_of, root)) {
    const PackedBatch batch = BatchOf(model.prompts);
    const at::Tensor theirs = TheirLogits(model).to(at::kDouble);
    const at::Tensor ours =
        OperatorLogits(model.weights, OperatorForward(model.weights, batch)).to(at::kDouble);
    const at::Tensor exact = ExactLogits(model.weights, batch);
    // Equal to the bit where products add in the same order, which the libraries do not promise. A rounding
    // that one of the two leaves out moves the logits by about the rounding error itself.
    const double difference = ((ours - theirs).norm() / exact.norm()).item<double>();
    const double rounding = ((theirs - exact).norm() / exact.norm()).item<double>();
    INFO(model.name << ": ours to theirs " << difference << ", theirs to float64 " << rounding);
    CHECK(rounding > 0);
    CHECK(difference < rounding / 8);
  }
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
