#include "core/model/hugging_face_weights.h"

#include <ATen/ops/equal.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/checkpoint/tensor_directory.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/unchecked_source.h"

namespace warpsmith {
namespace {

ModelConfig Config(bool tied = true) {
  ModelConfig config = OddConfig();
  config.tie_word_embeddings = tied;
  return config;
}

// Biases, which begin as 0, among the random values.
Parameters Random(const ModelConfig& config, uint64_t seed) {
  Parameters parameters{ParameterLayout(config)};
  parameters.InitRandom(seed);
  for (int64_t layer = 0; config.qkv_bias && layer < config.num_hidden_layers; ++layer) {
    at::Tensor bias = parameters.View(parameters.layout().layer_buffer(layer), "qkv_bias");
    for (int64_t i = 0; i < bias.size(0); ++i) bias[i].fill_(UniformDouble(seed + layer, i) - 0.5);
  }
  return parameters;
}

// Every tensor of type `type`.
TensorTypes All(const ModelConfig& config, TensorType type) {
  TensorTypes types;
  const ParameterLayout layout(config);
  for (const HfTensorLayout& tensor : layout.hf_tensors()) types[tensor.name] = type;
  return types;
}

void Write(const std::filesystem::path& directory, const Parameters& parameters, const TensorTypes& types,
           int64_t shard_bytes_max = 4096) {
  REQUIRE(WriteTensorDirectory(directory, HuggingFaceTensors(parameters.layout(), types), shard_bytes_max,
                               HuggingFaceSource(parameters))
              .ok());
}

// Type, shape and bytes of every tensor.
std::map<std::string, std::string> Contents(const std::filesystem::path& directory) {
  const TensorDirectory files = TensorDirectory::Open(directory).value();
  std::map<std::string, std::string> contents;
  for (const TensorView* view : files.tensors()) {
    std::string text(TensorTypeName(view->info.type));
    for (const int64_t extent : view->info.shape) text += "," + std::to_string(extent);
    contents[view->info.name] =
        text + ":" + std::string(reinterpret_cast<const char*>(view->bytes.data()), view->bytes.size());
  }
  return contents;
}

// A file whose tensors begin at an odd byte.
void WriteUnaligned(const std::filesystem::path& directory, const std::filesystem::path& from) {
  const std::string file = ReadFile(from / "model.safetensors").value();
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  ++length;
  std::string shifted(reinterpret_cast<const char*>(&length), sizeof(length));
  shifted += file.substr(8, length - 1) + " " + file.substr(8 + length - 1);
  std::ofstream(directory / "model.safetensors", std::ios::binary) << shifted;
}

}  // namespace

TEST_CASE(
    "a checkpoint of any architecture that is read and written again has the same types, shapes and bytes") {
  for (const auto& [name, config] : FamilyConfigs()) {
    INFO(name);
    for (const TensorType type : {TensorType::kF32, TensorType::kBF16, TensorType::kF16}) {
      INFO(std::string(TensorTypeName(type)));
      const TemporaryDirectory source, copy;
      Write(source.path(), Random(config, 5), All(config, type));
      Parameters parameters{ParameterLayout(config)};
      REQUIRE(LoadHuggingFaceWeights(source.path(), parameters).ok());
      CHECK(parameters.dtype() == at::kFloat);
      const TensorTypes types = ReadTensorTypes(source.path()).value();
      CHECK((types == All(config, type)));
      Write(copy.path(), parameters, types, int64_t{1} << 30);
      CHECK((Contents(copy.path()) == Contents(source.path())));
    }
  }
}

TEST_CASE("each tensor keeps its own type") {
  const ModelConfig config = Config();
  TensorTypes types = All(config, TensorType::kBF16);
  types["model.norm.weight"] = TensorType::kF32;
  types["model.layers.1.self_attn.q_norm.weight"] = TensorType::kF16;
  const TemporaryDirectory source, copy;
  Write(source.path(), Random(config, 5), types);
  Parameters parameters{ParameterLayout(config)};
  REQUIRE(LoadHuggingFaceWeights(source.path(), parameters).ok());
  Write(copy.path(), parameters, ReadTensorTypes(source.path()).value());
  CHECK((Contents(copy.path()) == Contents(source.path())));
}

TEST_CASE("the smallest and the largest numbers of each type survive the way through float32") {
  const ModelConfig config = Config();
  for (const auto& [type, values] :
       {std::pair(TensorType::kBF16, std::vector<double>{0x1p-133, 0x1.FEp127, -0x1.02p0}),
        std::pair(TensorType::kF16, std::vector<double>{0x1p-24, 65504, -0x1.004p0})}) {
    Parameters parameters = Random(config, 5);
    for (size_t i = 0; i < values.size(); ++i)
      parameters.View(1, "down")[0][static_cast<int64_t>(i)].fill_(values[i]);
    const TemporaryDirectory source;
    Write(source.path(), parameters, All(config, type));
    Parameters back{ParameterLayout(config)};
    REQUIRE(LoadHuggingFaceWeights(source.path(), back).ok());
    for (size_t i = 0; i < values.size(); ++i) {
      CHECK(back.View(1, "down")[0][static_cast<int64_t>(i)].item<double>() == values[i]);
    }
  }
}

TEST_CASE("bytes that are not aligned are read as well") {
  const ModelConfig config = Config();
  const TemporaryDirectory source, shifted;
  Write(source.path(), Random(config, 5), {}, int64_t{1} << 30);
  WriteUnaligned(shifted.path(), source.path());
  Parameters parameters{ParameterLayout(config)};
  REQUIRE(LoadHuggingFaceWeights(shifted.path(), parameters).ok());
  const Parameters expected = Random(config, 5);
  for (int i = 0; i < expected.num_buffers(); ++i) CHECK(at::equal(parameters.buffer(i), expected.buffer(i)));
}

TEST_CASE("a tensor of another architecture, or one too few, is named with the architecture that was meant") {
  const std::vector<NamedConfig> configs = FamilyConfigs();
  ModelConfig qwen3 = configs[0].config, qwen2 = qwen3, llama = qwen3;
  qwen2.qk_norm = llama.qk_norm = false;
  qwen2.qkv_bias = true;
  const auto error = [](const ModelConfig& written, const ModelConfig& read) {
    const TemporaryDirectory source;
    Write(source.path(), Random(written, 5), {});
    Parameters parameters{ParameterLayout(read)};
    const absl::Status status = LoadHuggingFaceWeights(source.path(), parameters);
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  CHECK(error(qwen2, llama) ==
        "checkpoint has a tensor that a LlamaForCausalLM of 2 layers lacks: "
        "model.layers.0.self_attn.k_proj.bias");
  CHECK(error(qwen3, qwen2) ==
        "checkpoint has a tensor that a Qwen2ForCausalLM of 2 layers lacks: "
        "model.layers.0.self_attn.k_norm.weight");
  CHECK(error(llama, qwen2) ==
        "checkpoint lacks the tensor model.layers.0.self_attn.q_proj.bias of a Qwen2ForCausalLM");
  CHECK(error(llama, qwen3) ==
        "checkpoint lacks the tensor model.layers.0.self_attn.q_norm.weight of a Qwen3ForCausalLM");
  ModelConfig deeper = llama;
  deeper.num_hidden_layers = 3;
  CHECK_THAT(error(deeper, llama), Catch::Contains("of 2 layers lacks: model.layers.2."));
  CHECK_THAT(error(llama, deeper), Catch::Contains("lacks the tensor model.layers.2."));
  CHECK_THAT(
      error(WithHeads(llama, 6, 3, 20), llama),
      Catch::Contains("model.layers.0.self_attn.k_proj.weight has shape [60,40], but the configuration wants "
                      "[40,40]"));
}

TEST_CASE("weights that are not finite are refused by the tensor's name") {
  const ModelConfig config = FamilyConfigs()[2].config;
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    for (const TensorType type : {TensorType::kF32, TensorType::kBF16, TensorType::kF16}) {
      Parameters parameters = Random(config, 5);
      parameters.View(2, "qkv_bias")[1].fill_(value);
      const TemporaryDirectory source;
      REQUIRE(WriteTensorDirectory(source.path(), HuggingFaceTensors(parameters.layout(), All(config, type)),
                                   4096, UncheckedSource(parameters))
                  .ok());
      const absl::Status status = LoadHuggingFaceWeights(source.path(), parameters);
      CHECK(absl::IsInvalidArgument(status));
      CHECK(status.message() == "tensor model.layers.1.self_attn.q_proj.bias has values that are not finite");
    }
  }
}

TEST_CASE("a value that F16 would make infinite, or that is not finite, is not written") {
  const ModelConfig config = FamilyConfigs()[2].config;
  Parameters parameters = Random(config, 5);
  const auto write = [&](TensorType type) {
    const TemporaryDirectory target;
    return WriteTensorDirectory(target.path(), HuggingFaceTensors(parameters.layout(), All(config, type)),
                                4096, HuggingFaceSource(parameters));
  };
  const at::Tensor bias = parameters.View(2, "qkv_bias")[1];
  bias.fill_(-65519.0);  // rounds to the largest
  CHECK(write(TensorType::kF16).ok());
  bias.fill_(-65520.0);
  CHECK(write(TensorType::kBF16).ok());
  CHECK(write(TensorType::kF16).message() ==
        "tensor model.layers.1.self_attn.q_proj.bias has the value -65520; float16 ends at 65504");
  bias.fill_(std::numeric_limits<double>::quiet_NaN());
  CHECK(write(TensorType::kF16).message() ==
        "tensor model.layers.1.self_attn.q_proj.bias has values that are not finite");
}

TEST_CASE("a checkpoint of which any shard is cut short is refused with the shard's name") {
  const ModelConfig config = FamilyConfigs()[3].config;
  const TemporaryDirectory source;
  Write(source.path(), Random(config, 5), {}, 20000);
  Parameters parameters{ParameterLayout(config)};
  REQUIRE(LoadHuggingFaceWeights(source.path(), parameters).ok());
  int num_shards = 0;
  for (const auto& file : std::filesystem::directory_iterator(source.path())) {
    if (file.path().extension() != ".safetensors") continue;
    ++num_shards;
    const std::string whole = ReadFile(file.path()).value();
    for (const size_t size : {size_t{0}, size_t{7}, whole.size() / 2, whole.size() - 1}) {
      std::filesystem::resize_file(file.path(), size);
      const absl::Status status = LoadHuggingFaceWeights(source.path(), parameters);
      CHECK(absl::IsInvalidArgument(status));
      CHECK_THAT(std::string(status.message()), Catch::Contains(file.path().filename().string()));
      REQUIRE(WriteFileAtomically(file.path(), whole).ok());
    }
  }
  CHECK(num_shards > 2);
}

TEST_CASE("a directory without weights, a lacking tensor, another model's and another type are errors") {
  const ModelConfig config = Config();
  Parameters parameters{ParameterLayout(config)};
  const TemporaryDirectory empty, lacking, other, integers;
  CHECK(absl::IsNotFound(LoadHuggingFaceWeights(empty.path(), parameters)));
  CHECK(absl::IsNotFound(ReadTensorTypes(empty.path()).status()));

  const Parameters random = Random(config, 5);
  std::vector<TensorInfo> tensors = HuggingFaceTensors(random.layout(), {});
  std::erase_if(tensors, [](const TensorInfo& tensor) { return tensor.name == "model.norm.weight"; });
  REQUIRE(WriteTensorDirectory(lacking.path(), tensors, 4096, HuggingFaceSource(random)).ok());
  const absl::Status lacks = LoadHuggingFaceWeights(lacking.path(), parameters);
  CHECK(absl::IsInvalidArgument(lacks));
  CHECK_THAT(std::string(lacks.message()), Catch::Contains("model.norm.weight"));

  ModelConfig larger = config;
  larger.hidden_size = 60;
  Write(other.path(), Random(larger, 5), {});
  CHECK(absl::IsInvalidArgument(LoadHuggingFaceWeights(other.path(), parameters)));

  const auto zeros = [](const TensorInfo& info, const ByteSink& sink) {
    return sink(std::vector<std::byte>(TensorBytes(info).value()));
  };
  REQUIRE(WriteTensorDirectory(integers.path(), {{"model.norm.weight", TensorType::kI16, {40}}}, 4096, zeros)
              .ok());
  for (const absl::Status& status :
       {LoadHuggingFaceWeights(integers.path(), parameters), ReadTensorTypes(integers.path()).status()}) {
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()),
               Catch::Contains("model.norm.weight\" is of type I16; F32, BF16 and F16"));
  }
}

}  // namespace warpsmith
