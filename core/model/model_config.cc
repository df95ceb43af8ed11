#include "core/model/model_config.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/json_depth.h"
#include "core/base/status_macros.h"
#include "core/model/json_fields.h"
#include "core/model/parameter_layout.h"
#include "core/model/rope_scaling_json.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSizeMax = int64_t{1} << 24;
constexpr int64_t kLayersMax = 4096;
constexpr double kParametersMax = 1e13;
constexpr int64_t kConfigBytesMax = int64_t{1} << 20;

// An architecture of transformers: what makes it another model, and what its config.json may leave out.
struct Architecture {
  const char* name;
  const char* model_type;
  bool qkv_bias;
  bool qk_norm;
  int64_t head_dim;  // 0: hidden_size / num_attention_heads
  int64_t max_position_embeddings;
};

constexpr Architecture kArchitectures[] = {
    {"Qwen3ForCausalLM", "qwen3", false, true, 128, 32768},
    {"Qwen2ForCausalLM", "qwen2", true, false, 0, 32768},
    {"LlamaForCausalLM", "llama", false, false, 0, 2048},
};

// Null where no architecture has this combination.
const Architecture* Find(const ModelConfig& config) {
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.qkv_bias == config.qkv_bias && architecture.qk_norm == config.qk_norm) {
      return &architecture;
    }
  }
  return nullptr;
}

// "a, b or c: nothing else is implemented" of one column of the table.
std::string OneOf(const char* Architecture::*column) {
  std::string names;
  for (size_t i = 0; i < std::size(kArchitectures); ++i) {
    const char* const separator = i == 0 ? "" : i + 1 < std::size(kArchitectures) ? ", " : " or ";
    absl::StrAppend(&names, separator, kArchitectures[i].*column);
  }
  return names + ": nothing else is implemented";
}

absl::Status RequireSize(const char* field, int64_t value) {
  if (value >= 1 && value <= kSizeMax) return absl::OkStatus();
  return InvalidField(field, absl::StrCat(value), absl::StrCat("from 1 to ", kSizeMax));
}

// Number is int64_t for a valid configuration, and double where it may overflow.
template <typename Number>
Number Count(const ModelConfig& c) {
  const auto hidden = static_cast<Number>(c.hidden_size), qkv = static_cast<Number>(c.qkv_size());
  const Number biases = c.qkv_bias ? qkv : 0, norms = c.qk_norm ? 2 * static_cast<Number>(c.head_dim) : 0;
  const Number attention = (qkv + static_cast<Number>(c.query_size())) * hidden + biases + norms;
  const Number mlp = 3 * static_cast<Number>(c.intermediate_size) * hidden;
  const Number embeddings = static_cast<Number>(c.vocab_size) * hidden * (c.tie_word_embeddings ? 1 : 2);
  return static_cast<Number>(c.num_hidden_layers) * (attention + mlp + 2 * hidden) + embeddings + hidden;
}

// "architectures" decides, and where it is absent "model_type".
absl::StatusOr<const Architecture*> ReadArchitecture(const Json& json) {
  const Json names = json.value("architectures", Json()), type = json.value("model_type", Json());
  for (const Architecture& architecture : kArchitectures) {
    const bool is_named =
        names.is_null() ? type == architecture.model_type : names == Json::array({architecture.name});
    if (!is_named) continue;
    RETURN_IF_ERROR(RequireOnly(json, "model_type", architecture.model_type));
    return &architecture;
  }
  if (names.is_null() && !type.is_null()) {
    return InvalidField("model_type", type.dump(), OneOf(&Architecture::model_type));
  }
  return InvalidField("architectures", names.is_null() ? "missing" : names.dump(),
                      OneOf(&Architecture::name));
}

// Qwen's layers may each be of a kind of their own.
absl::Status RequireFullAttention(const Json& json) {
  RETURN_IF_ERROR(RequireOnly(json, "use_sliding_window", false));
  const Json kinds = json.value("layer_types", Json::array());
  if (kinds.is_null()) return absl::OkStatus();
  const bool all_full = kinds.is_array() && std::all_of(kinds.begin(), kinds.end(), [](const Json& kind) {
                          return kind == "full_attention";
                        });
  if (all_full) return absl::OkStatus();
  return InvalidField("layer_types", kinds.dump(), "\"full_attention\" alone: nothing else is implemented");
}

absl::Status RequireComputed(const Json& json, const Architecture& architecture) {
  RETURN_IF_ERROR(RequireOnly(json, "attention_bias", architecture.qkv_bias));
  RETURN_IF_ERROR(RequireOnly(json, "mlp_bias", false));
  RETURN_IF_ERROR(RequireOnly(json, "hidden_act", "silu"));
  RETURN_IF_ERROR(RequireOnly(json, "quantization_config", nullptr));
  return RequireFullAttention(json);
}

// transformers 5 has all of it within "rope_parameters", transformers 4 rope_theta beside "rope_scaling". What stands
// within counts more than what stands beside.
absl::Status ReadRope(const Json& json, ModelConfig* config) {
  const Json scaling = json.value("rope_scaling", Json()), parameters = json.value("rope_parameters", Json());
  const Json rope = !scaling.empty() ? scaling : !parameters.empty() ? parameters : Json::object();
  ASSIGN_OR_RETURN(config->rope_scaling, ParseRopeScaling(rope, config->max_position_embeddings));
  for (const Json* const place : {&json, &rope}) {
    RETURN_IF_ERROR(RequireOnly(*place, "partial_rotary_factor", 1.0));
    RETURN_IF_ERROR(ReadField(*place, "rope_theta", Presence::kOptional, &config->rope_theta));
  }
  int64_t& original = config->rope_scaling.original_max_position_embeddings;
  if (original == 0) return absl::OkStatus();
  // Here alone transformers prefers what stands beside.
  return ReadField(json, "original_max_position_embeddings", Presence::kOptional, &original);
}

// Where the file has no head_dim: see Architecture.
absl::Status SetHeadDim(const Architecture& architecture, ModelConfig* config) {
  config->head_dim = architecture.head_dim;
  if (architecture.head_dim > 0 || config->num_attention_heads < 1) return absl::OkStatus();
  config->head_dim = config->hidden_size / config->num_attention_heads;
  if (config->hidden_size % config->num_attention_heads == 0) return absl::OkStatus();
  return InvalidField("head_dim", "missing",
                      absl::StrCat("given, for num_attention_heads, ", config->num_attention_heads,
                                   ", does not divide hidden_size, ", config->hidden_size));
}

absl::Status ReadSizes(const Json& json, const Architecture& architecture, ModelConfig* config) {
  RETURN_IF_ERROR(ReadField(json, "vocab_size", Presence::kRequired, &config->vocab_size));
  RETURN_IF_ERROR(ReadField(json, "hidden_size", Presence::kRequired, &config->hidden_size));
  RETURN_IF_ERROR(ReadField(json, "intermediate_size", Presence::kRequired, &config->intermediate_size));
  RETURN_IF_ERROR(ReadField(json, "num_hidden_layers", Presence::kRequired, &config->num_hidden_layers));
  RETURN_IF_ERROR(ReadField(json, "num_attention_heads", Presence::kRequired, &config->num_attention_heads));
  config->num_key_value_heads = config->num_attention_heads;
  RETURN_IF_ERROR(ReadField(json, "num_key_value_heads", Presence::kOptional, &config->num_key_value_heads));
  config->max_position_embeddings = architecture.max_position_embeddings;
  RETURN_IF_ERROR(
      ReadField(json, "max_position_embeddings", Presence::kOptional, &config->max_position_embeddings));
  if (json.value("head_dim", Json()).is_null()) return SetHeadDim(architecture, config);
  return ReadField(json, "head_dim", Presence::kRequired, &config->head_dim);
}

}  // namespace

absl::Status ValidateModelConfig(const ModelConfig& config) {
  absl::Status sizes;
  VisitFields(config, [&]<typename Field>(const char* name, const Field* value) {
    if constexpr (std::is_same_v<Field, int64_t>) sizes.Update(RequireSize(name, *value));
  });
  RETURN_IF_ERROR(sizes);
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    return InvalidField("num_attention_heads", absl::StrCat(config.num_attention_heads),
                        absl::StrCat("a multiple of num_key_value_heads, ", config.num_key_value_heads));
  }
  if (config.head_dim % 2 != 0 || config.head_dim > 512) {
    return InvalidField("head_dim", absl::StrCat(config.head_dim), "even and at most 512");
  }
  if (config.intermediate_size % kGateUpBlock != 0) {
    return InvalidField("intermediate_size", absl::StrCat(config.intermediate_size),
                        absl::StrCat("a multiple of ", kGateUpBlock));
  }
  if (!(config.rms_norm_eps > 0))
    return InvalidField("rms_norm_eps", absl::StrCat(config.rms_norm_eps), "positive");
  if (!(config.rope_theta > 0))
    return InvalidField("rope_theta", absl::StrCat(config.rope_theta), "positive");
  if (config.num_hidden_layers > kLayersMax) {
    return InvalidField("num_hidden_layers", absl::StrCat(config.num_hidden_layers),
                        absl::StrCat("at most ", kLayersMax));
  }
  if (const double count = Count<double>(config); count > kParametersMax) {
    return InvalidField("the number of parameters", absl::StrCat(count),
                        absl::StrCat("at most ", kParametersMax));
  }
  if (Find(config) == nullptr) {
    return InvalidField("qkv_bias", "true", "false with qk_norm: no architecture has both");
  }
  return ValidateRopeScaling(config.rope_scaling, config.rope_theta);
}

absl::StatusOr<ModelConfig> ParseModelConfig(std::string_view json_text) {
  const Json json =
      NestsDeeperThan(json_text) ? Json() : Json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("model config: config.json is not a JSON object");
  ASSIGN_OR_RETURN(const Architecture* const architecture, ReadArchitecture(json));
  RETURN_IF_ERROR(RequireComputed(json, *architecture));
  ModelConfig config;
  config.qkv_bias = architecture->qkv_bias;
  config.qk_norm = architecture->qk_norm;
  RETURN_IF_ERROR(ReadSizes(json, *architecture, &config));
  RETURN_IF_ERROR(ReadField(json, "rms_norm_eps", Presence::kOptional, &config.rms_norm_eps));
  RETURN_IF_ERROR(ReadField(json, "tie_word_embeddings", Presence::kOptional, &config.tie_word_embeddings));
  RETURN_IF_ERROR(ReadRope(json, &config));
  RETURN_IF_ERROR(ValidateModelConfig(config));
  return config;
}

absl::StatusOr<ModelConfig> LoadModelConfig(const std::filesystem::path& directory) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(directory / "config.json", kConfigBytesMax));
  return ParseModelConfig(text);
}

std::string ArchitectureOf(const ModelConfig& config) {
  const Architecture* const architecture = Find(config);
  WS_CHECK(architecture != nullptr) << "qkv_bias with qk_norm";
  return architecture->name;
}

std::string WriteModelConfig(const ModelConfig& config, std::string_view dtype) {
  nlohmann::ordered_json json;
  json["architectures"] = {ArchitectureOf(config)};
  json["model_type"] = Find(config)->model_type;
  VisitFields(config, [&](const char* name, const auto* value) { json[name] = *value; });
  json["rope_scaling"] = RopeScalingJson(config.rope_scaling);
  json["attention_bias"] = config.qkv_bias;
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

int64_t CountParameters(const ModelConfig& config) { return Count<int64_t>(config); }

}  // namespace warpsmith
