#include "core/model/model_config.h"

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

TEST_CASE("a written configuration is read back unchanged") {
  for (const ModelConfig& config : {OddConfig(), DemoConfig()}) {
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
  CHECK(ErrorOf("{}") == "model config: vocab_size is missing, but must be given");
  CHECK(ErrorOf("{\"vocab_size\": ") == "model config: config.json is not a JSON object");
  CHECK(ErrorOf("[1]") == "model config: config.json is not a JSON object");
}

TEST_CASE("the count of parameters is the sum over the layout") {
  for (ModelConfig config : {OddConfig(), DemoConfig()}) {
    for (const bool tied : {true, false}) {
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
