// Names in the JSON of a message, as people write them.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_JSON_SPELLING_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_JSON_SPELLING_H_

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"

namespace warpsmith {

// Puts full names in place of enum values in `json`, a message of `type`: "CANDIDATE_LANGUAGE_CUDA" for "cuda", "CUDA"
// and "candidate-language-cuda". Numbers stay. INVALID_ARGUMENT for the first value that is unknown, with all that are
// known, and for the first key that is unknown, with the nearest one or all.
absl::Status CorrectSpelling(const google::protobuf::Descriptor& type, nlohmann::json* json);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_JSON_SPELLING_H_
