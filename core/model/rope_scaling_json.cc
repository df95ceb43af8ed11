#include "core/model/rope_scaling_json.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/status_macros.h"
#include "core/model/json_fields.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

// transformers writes "rope_type", and reads "type" where that is absent. With neither it would ignore a factor.
absl::StatusOr<RopeType> ReadType(const Json& rope) {
  const char* const field = rope.contains("rope_type") || !rope.contains("type") ? "rope_type" : "type";
  const Json name = rope.value(field, rope.contains("factor") ? Json() : Json("default"));
  for (const RopeType type : {RopeType::kDefault, RopeType::kLinear, RopeType::kLlama3, RopeType::kYarn}) {
    if (name == RopeTypeName(type)) return type;
  }
  return InvalidField(std::string("rope_scaling.") + field, name.dump(),
                      "default, linear, llama3 or yarn: nothing else is implemented");
}

// By how much yarn's logits grow. `scale` is 1 but for DeepSeek's "mscale".
double YarnMagnitude(double factor, double scale) {
  return factor <= 1 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

absl::Status ReadLlama3(const Json& rope, RopeScaling* scaling) {
  RETURN_IF_ERROR(ReadField(rope, "low_freq_factor", Presence::kRequired, &scaling->low_freq_factor));
  return ReadField(rope, "high_freq_factor", Presence::kRequired, &scaling->high_freq_factor);
}

absl::Status ReadYarn(const Json& rope, RopeScaling* scaling) {
  RETURN_IF_ERROR(ReadField(rope, "beta_fast", Presence::kOptional, &scaling->beta_fast));
  RETURN_IF_ERROR(ReadField(rope, "beta_slow", Presence::kOptional, &scaling->beta_slow));
  RETURN_IF_ERROR(ReadField(rope, "truncate", Presence::kOptional, &scaling->truncate));
  double scale = 0, scale_of_all = 0;
  RETURN_IF_ERROR(ReadField(rope, "mscale", Presence::kOptional, &scale));
  RETURN_IF_ERROR(ReadField(rope, "mscale_all_dim", Presence::kOptional, &scale_of_all));
  scaling->attention_factor =
      scale != 0 && scale_of_all != 0
          ? YarnMagnitude(scaling->factor, scale) / YarnMagnitude(scaling->factor, scale_of_all)
          : YarnMagnitude(scaling->factor, 1);
  return ReadField(rope, "attention_factor", Presence::kOptional, &scaling->attention_factor);
}

}  // namespace

absl::StatusOr<RopeScaling> ParseRopeScaling(const Json& rope, int64_t max_position_embeddings) {
  if (!rope.is_object()) return InvalidField("rope_scaling", rope.dump(), "an object");
  const bool by_layers =
      std::any_of(rope.begin(), rope.end(), [](const Json& member) { return member.is_object(); });
  if (by_layers) {
    return InvalidField("rope_scaling", rope.dump(), "of numbers: one for all layers is implemented");
  }
  RopeScaling scaling;
  ASSIGN_OR_RETURN(scaling.type, ReadType(rope));
  if (scaling.type == RopeType::kDefault) return scaling;
  RETURN_IF_ERROR(ReadField(rope, "factor", Presence::kRequired, &scaling.factor));
  if (scaling.type == RopeType::kLinear) return scaling;
  scaling.original_max_position_embeddings = max_position_embeddings;
  RETURN_IF_ERROR(ReadField(rope, "original_max_position_embeddings", Presence::kOptional,
                            &scaling.original_max_position_embeddings));
  RETURN_IF_ERROR(scaling.type == RopeType::kLlama3 ? ReadLlama3(rope, &scaling) : ReadYarn(rope, &scaling));
  return scaling;
}

nlohmann::ordered_json RopeScalingJson(const RopeScaling& scaling) {
  nlohmann::ordered_json json;
  if (scaling.type == RopeType::kDefault) return json;
  json["rope_type"] = RopeTypeName(scaling.type);
  json["factor"] = scaling.factor;
  if (scaling.type == RopeType::kLinear) return json;
  json["original_max_position_embeddings"] = scaling.original_max_position_embeddings;
  if (scaling.type == RopeType::kLlama3) {
    json["low_freq_factor"] = scaling.low_freq_factor;
    json["high_freq_factor"] = scaling.high_freq_factor;
    return json;
  }
  json["beta_fast"] = scaling.beta_fast;
  json["beta_slow"] = scaling.beta_slow;
  json["attention_factor"] = scaling.attention_factor;
  json["truncate"] = scaling.truncate;
  return json;
}

}  // namespace warpsmith
