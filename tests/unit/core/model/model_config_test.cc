#include "core/model/model_config.h"

#include "absl/strings/str_cat.h"
#include "core/model/parameter_layout.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

std::string ErrorOf(const std::string& json) {
  return std::string(ParseModelConfig(json).status().message());
}

// A valid config.json with one field replaced.
std::string With(const std::string& field, const std::string& value) {
  std::string text = WriteModelConfig(OddConfig());
  const size_t begin = text.find("\"" + field + "\": ") + field.size() + 4;
  return text.replace(begin, text.find_first_of(",\n", begin) - begin, value);
}

TEST_CASE("a written configuration is read back unchanged, for every architecture") {
  std::vector<NamedConfig> configs = FamilyConfigs();
  configs.push_back({"the demo's", DemoConfig()});
  for (const auto& [name, config] : configs) {
    INFO(name);
    const absl::StatusOr<ModelConfig> read = ParseModelConfig(WriteModelConfig(config));
    REQUIRE(read.ok());
    CHECK(*read == config);
  }
}

TEST_CASE("both places of rope_theta are understood") {
  std::string text = With("rope_theta", "12345.0");
  CHECK(ParseModelConfig(text)->rope_theta == 12345.0);
  text.insert(1, R"("rope_parameters": {"rope_type": "default", "rope_theta": 777.0},)");
  CHECK(ParseModelConfig(text)->rope_theta == 777.0);
}

TEST_CASE("a scaling is read from either place, and what stands within it counts more") {
  std::string text = With("rope_scaling", R"({"rope_type": "linear", "factor": 2, "rope_theta": 9.0})");
  text.insert(1, R"("rope_parameters": {"rope_type": "yarn"},)");
  CHECK(ParseModelConfig(text)->rope_scaling == RopeScaling{.type = RopeType::kLinear, .factor = 2});
  CHECK(ParseModelConfig(text)->rope_theta == 9.0);
  std::string beside = With("rope_scaling", R"({"type": "yarn", "factor": 2})");
  CHECK(ParseModelConfig(beside)->rope_scaling.original_max_position_embeddings == 512);
  beside.insert(1, R"("original_max_position_embeddings": 77,)");
  CHECK(ParseModelConfig(beside)->rope_scaling.original_max_position_embeddings == 77);
}

TEST_CASE("the architecture says what a config.json does not, and a lone model_type will do") {
  const std::string sizes =
      R"("vocab_size": 9, "hidden_size": 48, "intermediate_size": 16, "num_hidden_layers": 1,
      "num_attention_heads": 4, "num_key_value_heads": 2})";
  const ModelConfig qwen3 = ParseModelConfig(R"({"model_type": "qwen3", )" + sizes).value();
  CHECK((qwen3.qk_norm && !qwen3.qkv_bias));
  CHECK(qwen3.head_dim == 128);
  CHECK(qwen3.max_position_embeddings == 32768);
  const ModelConfig qwen2 = ParseModelConfig(R"({"architectures": ["Qwen2ForCausalLM"], )" + sizes).value();
  CHECK((!qwen2.qk_norm && qwen2.qkv_bias));
  CHECK(qwen2.head_dim == 12);
  const ModelConfig llama =
      ParseModelConfig(R"({"architectures": ["LlamaForCausalLM"], "head_dim": null, )" + sizes).value();
  CHECK((!llama.qk_norm && !llama.qkv_bias));
  CHECK(llama.head_dim == 12);
  CHECK(llama.max_position_embeddings == 2048);
  CHECK(ArchitectureOf(llama) == "LlamaForCausalLM");
}

TEST_CASE("keys of a config.json that are absent or null have the defaults of transformers") {
  const std::string sizes =
      R"("vocab_size": 9, "hidden_size": 48, "intermediate_size": 16, "num_hidden_layers": 1,
      "num_attention_heads": 4)";
  const std::string nulls =
      R"(, "num_key_value_heads": null, "head_dim": null, "max_position_embeddings": null, "rms_norm_eps": null,
      "rope_theta": null, "rope_scaling": null, "rope_parameters": null, "tie_word_embeddings": null,
      "attention_bias": null, "mlp_bias": null, "hidden_act": null, "layer_types": null,
      "use_sliding_window": null, "partial_rotary_factor": null, "quantization_config": null})";
  for (const char* const type : {"qwen3", "qwen2", "llama"}) {
    INFO(type);
    const std::string begin = absl::StrCat(R"({"model_type": ")", type, R"(", )", sizes);
    const ModelConfig absent = ParseModelConfig(begin + "}").value();
    CHECK(absent.num_key_value_heads == 4);
    CHECK(absent.rms_norm_eps == 1e-6);
    CHECK(absent.rope_theta == 10000);
    CHECK(absent.rope_scaling == RopeScaling());
    CHECK_FALSE(absent.tie_word_embeddings);
    CHECK(ParseModelConfig(begin + nulls).value() == absent);
    CHECK(ErrorOf(begin + R"(, "num_key_value_heads": 3})") ==
          "model config: num_attention_heads is 4, but must be a multiple of num_key_value_heads, 3");
  }
}

TEST_CASE("another architecture is refused with those that there are") {
  CHECK(ErrorOf(R"({"architectures": ["MixtralForCausalLM"], "model_type": "mixtral"})") ==
        "model config: architectures is [\"MixtralForCausalLM\"], but must be Qwen3ForCausalLM, "
        "Qwen2ForCausalLM or "
        "LlamaForCausalLM: nothing else is implemented");
  CHECK(ErrorOf(R"({"model_type": "mixtral"})") ==
        "model config: model_type is \"mixtral\", but must be qwen3, qwen2 or llama: nothing else is "
        "implemented");
  CHECK(ErrorOf(R"({"architectures": ["LlamaForCausalLM"], "model_type": "qwen3"})") ==
        "model config: model_type is \"qwen3\", but must be \"llama\": nothing else is implemented");
  CHECK_THAT(ErrorOf("{}"), Catch::Contains("architectures is missing, but must be Qwen3ForCausalLM, "));
}

TEST_CASE("fields that contradict the architecture or ask for more than is computed are refused by name") {
  const auto error_with = [](const std::string& field) {
    return ErrorOf("{" + field + "," + WriteModelConfig(OddConfig()).substr(1));
  };
  CHECK_THAT(error_with(R"("mlp_bias": true)"), Catch::Contains("mlp_bias is true, but must be false"));
  CHECK_THAT(error_with(R"("partial_rotary_factor": 0.5)"), Catch::Contains("partial_rotary_factor is 0.5"));
  CHECK_THAT(error_with(R"("quantization_config": {"quant_method": "fp8"})"),
             Catch::Contains("quantization_config is {\"quant_method\":\"fp8\"}, but must be null"));
  CHECK_THAT(error_with(R"("layer_types": ["full_attention", "sliding_attention"])"),
             Catch::Contains("layer_types is [\"full_attention\",\"sliding_attention\"]"));
  CHECK(error_with(R"("layer_types": ["full_attention", "full_attention"])") == "");
  ModelConfig both = OddConfig();
  both.qkv_bias = true;
  CHECK(ValidateModelConfig(both).message() ==
        "model config: qkv_bias is true, but must be false with qk_norm: no architecture has both");
}

TEST_CASE("sizes that no memory holds are refused before any is taken") {
  CHECK_THAT(ErrorOf(With("num_hidden_layers", "5000")),
             Catch::Contains("num_hidden_layers is 5000, but must be at"));
  std::string text = With("vocab_size", "16777216");
  text.replace(text.find("\"hidden_size\": 40"), 17, "\"hidden_size\": 16777216");
  CHECK_THAT(ErrorOf(text), Catch::Contains("the number of parameters is "));
  CHECK(ErrorOf(std::string(5000, '[')) == "model config: config.json is not a JSON object");
}

TEST_CASE("a config.json with bytes changed at random is read as a model that can be made, or refused") {
  int num_read = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const std::vector<NamedConfig> configs = FamilyConfigs();
    std::string text = WriteModelConfig(configs[seed % configs.size()].config);
    for (uint64_t i = 0; i < 1 + seed % 3; ++i) {
      const char* const digits = "0123456789-.e\"{}[],:ntf ";
      text[UniformWord(seed, 2 * i) % text.size()] = digits[UniformWord(seed, 2 * i + 1) % 24];
    }
    const absl::StatusOr<ModelConfig> config = ParseModelConfig(text);
    if (!config.ok()) {
      CHECK(absl::IsInvalidArgument(config.status()));
      continue;
    }
    ++num_read;
    CHECK(ValidateModelConfig(*config).ok());
    CHECK(ParseModelConfig(WriteModelConfig(*config)).value() == *config);
  }
  CHECK(num_read > 300);
  CHECK(num_read < 2700);
}

TEST_CASE("what cannot be computed is refused by name, value and what is allowed") {
  CHECK(ErrorOf(With("hidden_act", "\"gelu\"")) ==
        "model config: hidden_act is \"gelu\", but must be \"silu\": nothing else is implemented");
  CHECK(ErrorOf(With("attention_bias", "true")).find("attention_bias is true") != std::string::npos);
  CHECK(ErrorOf(With("use_sliding_window", "true")).find("use_sliding_window is true") != std::string::npos);
  CHECK(ErrorOf(With("rope_scaling", "{\"factor\": 2}")).find("rope_scaling") != std::string::npos);
  CHECK(ErrorOf(With("model_type", "\"llama\"")).find("model_type is \"llama\"") != std::string::npos);
}

TEST_CASE("impossible sizes are refused") {
  CHECK(ErrorOf(With("num_attention_heads", "5")) ==
        "model config: num_attention_heads is 5, but must be a multiple of num_key_value_heads, 2");
  CHECK(ErrorOf(With("head_dim", "21")).find("head_dim is 21") != std::string::npos);
  CHECK(ErrorOf(With("intermediate_size", "81")).find("a multiple of 16") != std::string::npos);
  CHECK(ErrorOf(With("vocab_size", "0")) == "model config: vocab_size is 0, but must be from 1 to 16777216");
  CHECK(ErrorOf(With("vocab_size", "\"many\"")) ==
        "model config: vocab_size is \"many\", but must be a number");
  CHECK(ErrorOf(With("tie_word_embeddings", "1")).find("a boolean") != std::string::npos);
}

TEST_CASE("a missing size and text that is not JSON are errors") {
  CHECK(ErrorOf(R"({"model_type": "qwen3"})") == "model config: vocab_size is missing, but must be given");
  CHECK(ErrorOf("{\"vocab_size\": ") == "model config: config.json is not a JSON object");
  CHECK(ErrorOf("[1]") == "model config: config.json is not a JSON object");
}

// As the models' safetensors on huggingface.co count them.
struct Published {
  const char* name;
  const char* architecture;
  int64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers, heads, key_value_heads;
  bool tied;
  int64_t num_parameters;
};

TEST_CASE("published models have as many parameters as they say") {
  const Published models[] = {
      {"Qwen3-0.6B", "Qwen3", 151936, 1024, 3072, 28, 16, 8, true, 596049920},
      {"Qwen3-32B", "Qwen3", 151936, 5120, 25600, 64, 64, 8, false, 32762123264},
      {"Qwen2.5-Coder-0.5B", "Qwen2", 151936, 896, 4864, 24, 14, 2, true, 494032768},
      {"Qwen2.5-Coder-7B", "Qwen2", 152064, 3584, 18944, 28, 28, 4, false, 7615616512},
      {"Qwen2.5-Coder-32B", "Qwen2", 152064, 5120, 27648, 64, 40, 8, false, 32763876352},
      {"Llama-3.2-1B", "Llama", 128256, 2048, 8192, 16, 32, 8, true, 1235814400},
      {"Llama-3.1-8B", "Llama", 128256, 4096, 14336, 32, 32, 8, false, 8030261248},
      {"Llama-3.1-70B", "Llama", 128256, 8192, 28672, 80, 64, 8, false, 70553706496}};
  for (const Published& model : models) {
    INFO(model.name);
    const std::string text = absl::StrCat(
        R"({"architectures": [")", model.architecture, R"(ForCausalLM"], "vocab_size": )", model.vocab_size,
        R"(, "hidden_size": )", model.hidden_size, R"(, "intermediate_size": )", model.intermediate_size,
        R"(, "num_hidden_layers": )", model.num_hidden_layers, R"(, "num_attention_heads": )", model.heads,
        R"(, "num_key_value_heads": )", model.key_value_heads, R"(, "tie_word_embeddings": )",
        model.tied ? "true}" : "false}");
    const absl::StatusOr<ModelConfig> config = ParseModelConfig(text);
    INFO(config.status().message());
    REQUIRE(config.ok());
    CHECK(CountParameters(*config) == model.num_parameters);
  }
}

TEST_CASE("the count of parameters is the sum over the layout") {
  for (NamedConfig family : FamilyConfigs()) {
    for (const bool tied : {true, false}) {
      INFO(family.name);
      ModelConfig& config = family.config;
      config.tie_word_embeddings = tied;
      int64_t sum = 0;
      const ParameterLayout layout(config);
      for (const ParameterBuffer& buffer : layout.buffers()) {
        for (const ParameterEntry& entry : buffer.entries) sum += entry.size();
      }
      CHECK(CountParameters(config) == sum);
    }
  }
}

}  // namespace
}  // namespace warpsmith
