#include "core/model/rope_scaling.h"

#include <algorithm>
#include <cmath>

#include "core/model/json_fields.h"

namespace warpsmith {
namespace {

constexpr double kTwoPi = 6.283185307179586;

absl::Status Invalid(const std::string& member, double value, std::string_view wanted) {
  return InvalidField("rope_scaling." + member, absl::StrCat(value), wanted);
}

absl::Status ValidateLlama3(const RopeScaling& scaling) {
  if (!(scaling.low_freq_factor > 0)) {
    return Invalid("low_freq_factor", scaling.low_freq_factor, "positive");
  }
  if (scaling.high_freq_factor > scaling.low_freq_factor) return absl::OkStatus();
  return Invalid("high_freq_factor", scaling.high_freq_factor,
                 absl::StrCat("over low_freq_factor, ", scaling.low_freq_factor));
}

absl::Status ValidateYarn(const RopeScaling& scaling, double rope_theta) {
  if (!(scaling.attention_factor > 0)) {
    return Invalid("attention_factor", scaling.attention_factor, "positive");
  }
  if (!(scaling.beta_slow > 0)) return Invalid("beta_slow", scaling.beta_slow, "positive");
  if (!(scaling.beta_fast >= scaling.beta_slow)) {
    return Invalid("beta_fast", scaling.beta_fast, absl::StrCat("at least beta_slow, ", scaling.beta_slow));
  }
  if (rope_theta > 1) return absl::OkStatus();
  return InvalidField("rope_theta", absl::StrCat(rope_theta), "over 1 for rope type yarn");
}

}  // namespace

std::string RopeTypeName(RopeType type) {
  switch (type) {
    case RopeType::kDefault:
      return "default";
    case RopeType::kLinear:
      return "linear";
    case RopeType::kLlama3:
      return "llama3";
    case RopeType::kYarn:
      return "yarn";
  }
  return "";
}

std::string RopeScalingText(const RopeScaling& scaling) {
  if (scaling.type == RopeType::kDefault) return RopeTypeName(scaling.type);
  std::string text = absl::StrCat(RopeTypeName(scaling.type), ", factor ", scaling.factor);
  if (scaling.type == RopeType::kLinear) return text;
  absl::StrAppend(&text, ", original_max_position_embeddings ", scaling.original_max_position_embeddings);
  if (scaling.type == RopeType::kLlama3) {
    absl::StrAppend(&text, ", low_freq_factor ", scaling.low_freq_factor, ", high_freq_factor ",
                    scaling.high_freq_factor);
    return text;
  }
  absl::StrAppend(&text, ", beta_fast ", scaling.beta_fast, ", beta_slow ", scaling.beta_slow,
                  ", attention_factor ", scaling.attention_factor, scaling.truncate ? "" : ", not truncated");
  return text;
}

YarnRamp YarnRampOf(const RopeScaling& scaling, int64_t head_dim, double rope_theta) {
  const auto h = static_cast<double>(head_dim);
  const auto positions = static_cast<double>(scaling.original_max_position_embeddings);
  const auto pair_of = [&](double turns) {
    return h * std::log(positions / (turns * kTwoPi)) / (2 * std::log(rope_theta));
  };
  YarnRamp ramp = {pair_of(scaling.beta_fast), pair_of(scaling.beta_slow)};
  if (scaling.truncate) ramp = {std::floor(ramp.first), std::ceil(ramp.last)};
  ramp = {std::max(ramp.first, 0.0), std::min(ramp.last, h - 1)};
  if (ramp.first == ramp.last) ramp.last += 0.001;  // transformers' way not to divide by 0
  return ramp;
}

absl::Status ValidateRopeScaling(const RopeScaling& scaling, double rope_theta) {
  if (scaling.type == RopeType::kDefault) return absl::OkStatus();
  if (!(scaling.factor >= 1)) return Invalid("factor", scaling.factor, "at least 1");
  if (scaling.type == RopeType::kLinear) return absl::OkStatus();
  if (scaling.original_max_position_embeddings < 1) {
    return Invalid("original_max_position_embeddings",
                   static_cast<double>(scaling.original_max_position_embeddings), "at least 1");
  }
  return scaling.type == RopeType::kLlama3 ? ValidateLlama3(scaling) : ValidateYarn(scaling, rope_theta);
}

}  // namespace warpsmith
