#include "core/model/model_config.h"

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/model/parameter_layout.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSizeMax = int64_t{1} << 24;
constexpr int64_t kConfigBytesMax = int64_t{1} << 20;

absl::Status Invalid(std::string_view field, std::string_view value, std::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("model config: ", std::string(field), " is ",
                                                 std::string(value), ", but must be ", std::string(wanted)));
}

absl::Status RequireSize(const char* field, int64_t value) {
  if (value >= 1 && value <= kSizeMax) return absl::OkStatus();
  return Invalid(field, absl::StrCat(value), absl::StrCat("from 1 to ", kSizeMax));
}

template <typename Number>
absl::Status ReadNumber(const Json& json, const char* field, bool required, Number* value) {
  const auto found = json.find(field);
  if (found == json.end() || found->is_null()) {
    return required ? Invalid(field, "missing", "given") : absl::OkStatus();
  }
  const bool fits = std::is_same_v<Number, double> ? found->is_number() : found->is_number_integer();
  if (!fits) return Invalid(field, found->dump(), "a number");
  *value = found->get<Number>();
  return absl::OkStatus();
}

// `field` absent, null or `allowed`.
absl::Status RequireOnly(const Json& json, const char* field, const Json& allowed) {
  const auto found = json.find(field);
  if (found == json.end() || found->is_null() || *found == allowed) return absl::OkStatus();
  return Invalid(field, found->dump(), absl::StrCat(allowed.dump(), ": nothing else is implemented"));
}

absl::Status RequireKnownArchitecture(const Json& json) {
  RETURN_IF_ERROR(RequireOnly(json, "architectures", Json::array({"Qwen3ForCausalLM"})));
  RETURN_IF_ERROR(RequireOnly(json, "model_type", "qwen3"));
  RETURN_IF_ERROR(RequireOnly(json, "attention_bias", false));
  RETURN_IF_ERROR(RequireOnly(json, "hidden_act", "silu"));
  return RequireOnly(json, "use_sliding_window", false);
}

// transformers 5 writes rope_theta inside "rope_parameters", transformers 4 beside "rope_scaling": null.
absl::Status ReadRope(const Json& json, double* rope_theta) {
  RETURN_IF_ERROR(RequireOnly(json, "rope_scaling", nullptr));
  const auto rope = json.find("rope_parameters");
  if (rope == json.end() || rope->is_null()) return ReadNumber(json, "rope_theta", false, rope_theta);
  if (!rope->is_object()) return Invalid("rope_parameters", rope->dump(), "an object");
  RETURN_IF_ERROR(RequireOnly(*rope, "rope_type", "default"));
  return ReadNumber(*rope, "rope_theta", false, rope_theta);
}

}  // namespace

absl::Status ValidateModelConfig(const ModelConfig& config) {
  absl::Status sizes;
  VisitFields(config, [&]<typename Field>(const char* name, const Field* value) {
    if constexpr (std::is_same_v<Field, int64_t>) sizes.Update(RequireSize(name, *value));
  });
  RETURN_IF_ERROR(sizes);
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    return Invalid("num_attention_heads", absl::StrCat(config.num_attention_heads),
                   absl::StrCat("a multiple of num_key_value_heads, ", config.num_key_value_heads));
  }
  if (config.head_dim % 2 != 0 || config.head_dim > 512) {
    return Invalid("head_dim", absl::StrCat(config.head_dim), "even and at most 512");
  }
  if (config.intermediate_size % kGateUpBlock != 0) {
    return Invalid("intermediate_size", absl::StrCat(config.intermediate_size),
                   absl::StrCat("a multiple of ", kGateUpBlock));
  }
  if (!(config.rms_norm_eps > 0))
    return Invalid("rms_norm_eps", absl::StrCat(config.rms_norm_eps), "positive");
  if (!(config.rope_theta > 0)) return Invalid("rope_theta", absl::StrCat(config.rope_theta), "positive");
  return absl::OkStatus();
}

absl::StatusOr<ModelConfig> ParseModelConfig(std::string_view json_text) {
  const Json json = Json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("model config: config.json is not a JSON object");
  RETURN_IF_ERROR(RequireKnownArchitecture(json));
  ModelConfig config;
  RETURN_IF_ERROR(ReadNumber(json, "vocab_size", true, &config.vocab_size));
  RETURN_IF_ERROR(ReadNumber(json, "hidden_size", true, &config.hidden_size));
  RETURN_IF_ERROR(ReadNumber(json, "intermediate_size", true, &config.intermediate_size));
  RETURN_IF_ERROR(ReadNumber(json, "num_hidden_layers", true, &config.num_hidden_layers));
  RETURN_IF_ERROR(ReadNumber(json, "num_attention_heads", true, &config.num_attention_heads));
  RETURN_IF_ERROR(ReadNumber(json, "num_key_value_heads", true, &config.num_key_value_heads));
  RETURN_IF_ERROR(ReadNumber(json, "head_dim", false, &config.head_dim));
  RETURN_IF_ERROR(ReadNumber(json, "max_position_embeddings", false, &config.max_position_embeddings));
  RETURN_IF_ERROR(ReadNumber(json, "rms_norm_eps", false, &config.rms_norm_eps));
  RETURN_IF_ERROR(ReadRope(json, &config.rope_theta));
  const auto tied = json.find("tie_word_embeddings");
  if (tied != json.end() && !tied->is_boolean())
    return Invalid("tie_word_embeddings", tied->dump(), "a boolean");
  config.tie_word_embeddings = tied != json.end() && tied->get<bool>();
  RETURN_IF_ERROR(ValidateModelConfig(config));
  return config;
}

absl::StatusOr<ModelConfig> LoadModelConfig(const std::filesystem::path& directory) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(directory / "config.json", kConfigBytesMax));
  return ParseModelConfig(text);
}

std::string WriteModelConfig(const ModelConfig& config, std::string_view dtype) {
  nlohmann::ordered_json json;
  json["architectures"] = {"Qwen3ForCausalLM"};
  json["model_type"] = "qwen3";
  VisitFields(config, [&](const char* name, const auto* value) { json[name] = *value; });
  json["rope_scaling"] = nullptr;
  json["attention_bias"] = false;
  json["attention_dropout"] = 0.0;
  json["hidden_act"] = "silu";
  json["use_sliding_window"] = false;
  json["torch_dtype"] = dtype;
  return json.dump(2) + "\n";
}

int64_t NumTokenIds(const ModelConfig& config, int64_t num_token_ids) {
  WS_CHECK(num_token_ids >= 0 && num_token_ids <= config.vocab_size)
      << num_token_ids << " token ids, and a head of " << config.vocab_size << " rows";
  return num_token_ids == 0 ? config.vocab_size : num_token_ids;
}

int64_t CountParameters(const ModelConfig& config) {
  const int64_t attention =
      (config.qkv_size() + config.query_size()) * config.hidden_size + 2 * config.head_dim;
  const int64_t mlp = 3 * config.intermediate_size * config.hidden_size;
  const int64_t layer = attention + mlp + 2 * config.hidden_size;
  const int64_t embeddings = config.vocab_size * config.hidden_size * (config.tie_word_embeddings ? 1 : 2);
  return config.num_hidden_layers * layer + embeddings + config.hidden_size;
}

}  // namespace warpsmith
