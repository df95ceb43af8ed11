// The "rope_scaling" of a config.json.
#ifndef WARPSMITH_CORE_MODEL_ROPE_SCALING_JSON_H_
#define WARPSMITH_CORE_MODEL_ROPE_SCALING_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "core/model/rope_scaling.h"

namespace warpsmith {

// Of the object that "rope_scaling" or "rope_parameters" is. Members that its type does not name are ignored, as
// transformers does. L is `max_position_embeddings` where the object has none; attention_factor, where it has none,
// is 0.1 ln(factor) + 1, or the ratio that mscale and mscale_all_dim give. INVALID_ARGUMENT for another type, for an
// object by kinds of layers, and for a member that is missing or no number; nothing else is checked.
absl::StatusOr<RopeScaling> ParseRopeScaling(const nlohmann::json& rope, int64_t max_position_embeddings);

// What ParseRopeScaling reads back; null for the default.
nlohmann::ordered_json RopeScalingJson(const RopeScaling& scaling);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_ROPE_SCALING_JSON_H_
