// JSON of files that others may have written, broken or forged.
#ifndef WARPSMITH_CORE_CHECKPOINT_STRICT_JSON_H_
#define WARPSMITH_CORE_CHECKPOINT_STRICT_JSON_H_

#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace warpsmith {

// Parses an object in which no key is given twice, at any depth: nlohmann alone takes the last of them
// silently. Members keep their order. INVALID_ARGUMENT otherwise.
absl::StatusOr<nlohmann::ordered_json> ParseStrictJson(std::string_view text);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CHECKPOINT_STRICT_JSON_H_
