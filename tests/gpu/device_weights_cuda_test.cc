#include "core/model/device_weights_cuda.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <utility>

#include "core/checkpoint/hugging_face_directory.h"
#include "core/model/hugging_face_weights.h"
#include "tests/gpu/device_rate.h"
#include "tests/support/catch.h"
#include "tests/support/device_decoder_fixture.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/unchecked_source.h"

namespace warpsmith {
namespace {

void Export(const std::filesystem::path& directory, const Parameters& parameters, TensorType type,
            int64_t shard_bytes_max = 20000) {
  TensorTypes types;
  for (const HfTensorLayout& tensor : parameters.layout().hf_tensors()) types[tensor.name] = type;
  REQUIRE(WriteHuggingFaceDirectory(directory,
                                    {.files = {{"config.json", WriteModelConfig(parameters.config())}},
                                     .tensors = HuggingFaceTensors(parameters.layout(), types),
                                     .shard_bytes_max = shard_bytes_max},
                                    UncheckedSource(parameters))
              .ok());
}

DeviceWeights Zeros(const ModelConfig& config) {
  absl::StatusOr<DeviceWeights> weights = DeviceWeights::Allocate(config, 0);
  INFO(weights.status().message());
  REQUIRE(weights.ok());
  return *std::move(weights);
}

std::vector<uint16_t> Read(const DeviceWeights& weights) {
  std::vector<uint16_t> bits(weights.size());
  REQUIRE(cudaMemcpy(bits.data(), weights.base(), bits.size() * sizeof(uint16_t), cudaMemcpyDeviceToHost) ==
          cudaSuccess);
  return bits;
}

std::vector<uint16_t> RoundedByTorch(const Parameters& parameters) {
  std::vector<uint16_t> bits;
  for (int i = 0; i < parameters.num_buffers(); ++i) {
    const at::Tensor rounded = parameters.buffer(i).to(at::kBFloat16);
    const auto* const from = static_cast<const uint16_t*>(rounded.const_data_ptr());
    bits.insert(bits.end(), from, from + rounded.numel());
  }
  return bits;
}

}  // namespace

TEST_CASE(
    "a Hugging Face directory of any type and parameters of either dtype give the bits that Torch rounds "
    "to") {
  for (const auto& [name, config] : DeviceFamilyConfigs()) {
    Parameters random{ParameterLayout(config)};
    random.InitRandom(5);
    for (const TensorType type : {TensorType::kF32, TensorType::kBF16, TensorType::kF16}) {
      INFO(name << " " << TensorTypeName(type));
      const TemporaryDirectory folder;
      Export(folder.path() / "model", random, type);
      Parameters loaded{ParameterLayout(config)};
      REQUIRE(LoadHuggingFaceWeights(folder.path() / "model", loaded).ok());
      DeviceWeights weights = Zeros(config);
      const absl::Status status = weights.LoadHuggingFace(folder.path() / "model");
      INFO(status.message());
      REQUIRE(status.ok());
      CHECK((Read(weights) == RoundedByTorch(loaded)));
      DeviceWeights set = Zeros(config);
      REQUIRE(set.SetParameters(loaded).ok());
      CHECK((Read(set) == RoundedByTorch(loaded)));
      REQUIRE(set.SetParameters(random.Clone(at::kBFloat16)).ok());
      CHECK((Read(set) == RoundedByTorch(random)));
    }
  }
}

TEST_CASE("a checkpoint with a value that is not finite is refused by the tensor's name") {
  const ModelConfig config = DeviceFamilyConfigs()[0].config;
  for (const TensorType type : {TensorType::kF32, TensorType::kBF16, TensorType::kF16}) {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      Parameters parameters = DeviceParameters(config, 5);
      parameters.View(2, "gate_up")[20][3].fill_(bad);  // row 20: the second block, which is of up_proj
      const TemporaryDirectory folder;
      Export(folder.path() / "model", parameters, type);
      DeviceWeights weights = Zeros(config);
      CHECK(std::string(weights.LoadHuggingFace(folder.path() / "model").message()) ==
            "tensor model.layers.1.mlp.up_proj.weight has values that are not finite");
      CHECK(std::string(weights.SetParameters(parameters).message()) ==
            "tensor model.layers.1.mlp.up_proj.weight has values that are not finite");
    }
  }
}

TEST_CASE(
    "a checkpoint of another model, and parameters of another, are refused in the words of Parameters") {
  const auto configs = DeviceFamilyConfigs();
  const TemporaryDirectory folder;
  Export(folder.path() / "model", DeviceParameters(configs[2].config, 5), TensorType::kF32);
  DeviceWeights weights = Zeros(configs[0].config);
  Parameters parameters{ParameterLayout(configs[0].config)};
  const absl::Status expected = LoadHuggingFaceWeights(folder.path() / "model", parameters);
  REQUIRE(!expected.ok());
  CHECK(weights.LoadHuggingFace(folder.path() / "model") == expected);
  CHECK(weights.LoadHuggingFace(folder.path()).code() == absl::StatusCode::kNotFound);
  CHECK(weights.SetParameters(DeviceParameters(configs[1].config, 5)).code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(weights.SetParameters(Parameters(ParameterLayout(configs[0].config), at::kDouble)).code() ==
        absl::StatusCode::kInvalidArgument);
}

// 2 GB of zeros cut into shards, written once, so that its pages are in the page cache.
TEST_CASE("the rate of loading a model of 2 GB from the page cache") {
  ModelConfig config;
  config.vocab_size = 151936;
  config.hidden_size = 2048;
  config.intermediate_size = 6144;
  config.num_hidden_layers = 14;
  config.num_attention_heads = 16;
  config.num_key_value_heads = 8;
  config.tie_word_embeddings = true;
  const TemporaryDirectory folder;
  const Parameters parameters(ParameterLayout(config), at::kBFloat16);
  for (const TensorType type : {TensorType::kBF16, TensorType::kF32}) {
    Export(folder.path() / "model", parameters, type, int64_t{1} << 30);
    DeviceWeights weights = Zeros(config);
    for (int run = 0; run < 3; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      REQUIRE(weights.LoadHuggingFace(folder.path() / "model").ok());
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      std::printf("loading %.2f GB of bfloat16 from %s: %.2f s, %.1f GB/s\n",
                  static_cast<double>(weights.size()) * 2e-9, std::string(TensorTypeName(type)).c_str(),
                  seconds, static_cast<double>(weights.size()) * 2e-9 / seconds);
    }
  }
  DeviceWeights weights = Zeros(config);
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(weights.SetParameters(parameters).ok());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("setting %.2f GB from bfloat16 parameters: %.1f GB/s\n",
              static_cast<double>(weights.size()) * 2e-9,
              static_cast<double>(weights.size()) * 2e-9 / seconds);
}

}  // namespace warpsmith
