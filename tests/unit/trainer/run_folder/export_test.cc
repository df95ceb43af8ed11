#include "trainer/run_folder/export.h"

#include <sys/resource.h>

#include <csignal>
#include <map>
#include <string>

#include "core/base/file.h"
#include "core/checkpoint/tensor_directory.h"
#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

using Json = nlohmann::ordered_json;

const char kTokenizer[] = "datasets/tokenizer/small";
const char kPrompts[] = "datasets/prompts/small";

// A head of 64 rows more than the small tokenizer has ids.
ModelConfig PaddedConfig() {
  return {.vocab_size = 1600,
          .hidden_size = 32,
          .intermediate_size = 48,
          .num_hidden_layers = 2,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 8,
          .max_position_embeddings = 512};
}

int32_t Id(const char* token) { return Tokenizer::Load(kTokenizer).value().TokenId(token).value(); }

// As a publisher might write it: keys that are nothing to us, another order, another indentation.
std::string ForeignConfig() {
  Json json = {{"transformers_version", "4.51.0"}, {"dtype", "bfloat16"}, {"max_window_layers", 2}};
  json.update(Json::parse(WriteModelConfig(PaddedConfig())));
  json.erase("torch_dtype");
  json["eos_token_id"] = Id("<|im_end|>");
  return json.dump(4);
}

std::string ForeignGenerationConfig(const Json& eos) {
  return Json{{"bos_token_id", Id("<|endoftext|>")},
              {"pad_token_id", 7},
              {"do_sample", true},
              {"eos_token_id", eos},
              {"temperature", 0.6},
              {"top_k", 20},
              {"top_p", 0.95}}
      .dump(4);
}

const Sampling kSampling = {.temperature = 0.6, .top_p = 0.95, .top_k = 20};

std::map<std::string, std::string> Tensors(const std::filesystem::path& directory) {
  const TensorDirectory files = TensorDirectory::Open(directory).value();
  std::map<std::string, std::string> tensors;
  for (const TensorView* view : files.tensors()) {
    tensors[view->info.name] =
        std::string(TensorTypeName(view->info.type)) +
        std::string(reinterpret_cast<const char*>(view->bytes.data()), view->bytes.size());
  }
  return tensors;
}

// A checkpoint, and what a run that starts from it exports.
class Export {
 public:
  // Writes the files of the checkpoint that are given text, and weights of `type`, but for one
  // float32 norm.
  Export(const std::string& config, const std::string& generation_config, TensorType type)
      : model_(root_.path() / "m") {
    std::filesystem::create_directory(model_);
    Write("config.json", config);
    if (!generation_config.empty()) Write("generation_config.json", generation_config);
    Parameters random{ParameterLayout(PaddedConfig())};
    random.InitRandom(3);
    TensorTypes types;
    for (const HfTensorLayout& tensor : random.layout().hf_tensors()) types[tensor.name] = type;
    types["model.norm.weight"] = TensorType::kF32;
    REQUIRE(WriteTensorDirectory(model_, HuggingFaceTensors(random.layout(), types), 1 << 16,
                                 HuggingFaceSource(random))
                .ok());
  }

  // Import, no update, export.
  void Run(const Sampling& sampling = kSampling, const std::filesystem::path& tokenizer = kTokenizer) {
    const SourceModel source = ReadSourceModel(model_, PaddedConfig()).value();
    Parameters parameters{ParameterLayout(PaddedConfig())};
    REQUIRE(LoadHuggingFaceWeights(model_, parameters).ok());
    std::filesystem::rename(model_, root_.path() / "gone");  // read at the start, not at the end
    const Prompts prompts = Prompts::Load(tokenizer, kPrompts, root_.path() / "gone").value();
    REQUIRE(ExportHuggingFace(parameters, prompts, source, kPrompts, sampling, root_.path() / "export").ok());
    model_ = root_.path() / "gone";
  }

  std::string Came(const std::string& name) const { return ReadFile(model_ / name).value(); }
  std::string Went(const std::string& name) const { return ReadFile(root_.path() / "export" / name).value(); }
  Json WentJson(const std::string& name) const { return Json::parse(Went(name)); }
  std::filesystem::path model() const { return model_; }
  std::filesystem::path directory() const { return root_.path() / "export"; }

 private:
  void Write(const std::string& name, const std::string& text) {
    REQUIRE(WriteFileAtomically(model_ / name, text).ok());
  }

  const TemporaryDirectory root_;
  std::filesystem::path model_;
};

}  // namespace

TEST_CASE("a checkpoint that is imported and exported without an update has the same bytes") {
  const Json stops = {Id("<|im_end|>"), Id("<|endoftext|>")};
  const Tokenizer tokenizer = Tokenizer::Load(kTokenizer).value();
  for (const TensorType type : {TensorType::kBF16, TensorType::kF16, TensorType::kF32}) {
    Export round(ForeignConfig(), ForeignGenerationConfig(stops), type);
    round.Run();
    CHECK((Tensors(round.directory()) == Tensors(round.model())));
    CHECK(round.Went("config.json") == round.Came("config.json"));
    CHECK(round.Went("generation_config.json") == round.Came("generation_config.json"));
    for (const TokenizerFile& file : tokenizer.files()) {
      CHECK(round.Went(file.name) == file.content);
    }
  }
}

TEST_CASE("the sampling of the training is all that changes in generation_config.json") {
  const Json stops = {Id("<|im_end|>"), Id("<|endoftext|>")};
  Export round(ForeignConfig(), ForeignGenerationConfig(stops), TensorType::kBF16);
  round.Run({.temperature = 0.9, .top_p = 0.8, .top_k = 0});
  Json expected = Json::parse(round.Came("generation_config.json"));
  expected.update({{"temperature", 0.9}, {"top_p", 0.8}, {"top_k", 0}});
  CHECK(round.WentJson("generation_config.json") == expected);
  CHECK(round.Went("config.json") == round.Came("config.json"));
}

TEST_CASE("an export asks for no sampling that training did not use, and keeps what is none") {
  const Json stops = {Id("<|im_end|>"), Id("<|endoftext|>")};
  const Json plain = Json::parse(ForeignGenerationConfig(stops));
  Json came = plain;
  came.update({{"repetition_penalty", 1.05}, {"min_p", 0.1}, {"no_repeat_ngram_size", 3}, {"num_beams", 4}});
  came.update(
      {{"typical_p", 0.9}, {"presence_penalty", 1.5}, {"min_new_tokens", 8}, {"bad_words_ids", {{3}}}});
  Export round(ForeignConfig(), came.dump(), TensorType::kBF16);
  round.Run();
  CHECK(round.WentJson("generation_config.json") == plain);
}

TEST_CASE(
    "where training ends answers with a token that the checkpoint does not name, the export names all") {
  const Json text = Id("<|endoftext|>"), all = {Id("<|endoftext|>"), Id("<|im_end|>")};
  Export base(ForeignConfig(), ForeignGenerationConfig(text), TensorType::kBF16);
  base.Run();
  Json expected = Json::parse(base.Came("config.json"));
  expected["eos_token_id"] = all;
  CHECK(base.WentJson("config.json") == expected);
  CHECK(base.WentJson("generation_config.json").at("eos_token_id") == all);
  CHECK(base.WentJson("generation_config.json").at("pad_token_id") == 7);
}

TEST_CASE("the tokenizer of an export ends texts with the token that ends an answer") {
  Export base(ForeignConfig(), ForeignGenerationConfig(Id("<|endoftext|>")), TensorType::kBF16);
  const TemporaryDirectory tokenizer;
  std::filesystem::copy_file(std::string(kTokenizer) + "/tokenizer.json",
                             tokenizer.path() / "tokenizer.json");
  REQUIRE(WriteFileAtomically(tokenizer.path() / "tokenizer_config.json",
                              R"({"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"})")
              .ok());
  base.Run(kSampling, tokenizer.path());
  const Json expected = {{"eos_token", "<|im_end|>"}, {"pad_token", "<|endoftext|>"}};
  CHECK(base.WentJson("tokenizer_config.json") == expected);
}

TEST_CASE("a checkpoint without generation_config.json gets one") {
  Export bare(ForeignConfig(), "", TensorType::kBF16);
  bare.Run();
  const Json stops = {Id("<|im_end|>"), Id("<|endoftext|>")};
  const Json generation = bare.WentJson("generation_config.json");
  CHECK(generation.at("eos_token_id") == stops);
  CHECK(generation.at("pad_token_id") == Id("<|endoftext|>"));
  CHECK(generation.at("top_k") == 20);
  CHECK(bare.WentJson("config.json").at("eos_token_id") == stops);
}

TEST_CASE("an export that cannot be written leaves the one before it whole, and the next replaces it") {
  const TemporaryDirectory directory;
  const auto place = directory.path() / "e";
  const SourceModel source = ReadSourceModel("", PaddedConfig()).value();
  Parameters parameters{ParameterLayout(PaddedConfig())};
  parameters.InitRandom(3);
  const Prompts prompts = Prompts::Load(kTokenizer, kPrompts, "").value();
  REQUIRE(ExportHuggingFace(parameters, prompts, source, kPrompts, kSampling, place).ok());
  const auto before = Tensors(place);

  parameters.InitRandom(4);
  struct rlimit whole_disk = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &whole_disk) == 0);
  struct rlimit full_disk = whole_disk;
  full_disk.rlim_cur = 4096;  // less than the tokenizer's files
  const auto before_signal = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &full_disk) == 0);
  const absl::Status failed = ExportHuggingFace(parameters, prompts, source, kPrompts, kSampling, place);
  setrlimit(RLIMIT_FSIZE, &whole_disk);
  std::signal(SIGXFSZ, before_signal);
  INFO(failed);
  REQUIRE_FALSE(failed.ok());
  REQUIRE(std::filesystem::exists(place));
  CHECK((Tensors(place) == before));

  REQUIRE(ExportHuggingFace(parameters, prompts, source, kPrompts, kSampling, place).ok());
  CHECK_FALSE((Tensors(place) == before));
}

TEST_CASE("a run from random weights exports float32 and every stop token in both configurations") {
  const TemporaryDirectory directory;
  const SourceModel source = ReadSourceModel("", PaddedConfig()).value();
  Parameters parameters{ParameterLayout(PaddedConfig())};
  parameters.InitRandom(3);
  const Prompts prompts = Prompts::Load(kTokenizer, kPrompts, "").value();
  REQUIRE(ExportHuggingFace(parameters, prompts, source, kPrompts, kSampling, directory.path() / "e").ok());
  const Json stops = {Id("<|im_end|>"), Id("<|endoftext|>")};
  for (const char* name : {"config.json", "generation_config.json"}) {
    CHECK(Json::parse(ReadFile(directory.path() / "e" / name).value()).at("eos_token_id") == stops);
  }
  const TensorTypes types = ReadTensorTypes(directory.path() / "e").value();
  for (const auto& [name, type] : types) CHECK(type == TensorType::kF32);
  CHECK(LoadModelConfig(directory.path() / "e").value() == PaddedConfig());
}

}  // namespace warpsmith
