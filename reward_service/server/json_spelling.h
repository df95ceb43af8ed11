// Names in the JSON of a message, as people write them.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_JSON_SPELLING_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_JSON_SPELLING_H_

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"

namespace warpsmith {

// Replaces enum values in `json`, a message of `type`, that are no full names by these: "cuda", "CUDA" and
// "candidate-language-cuda" by "CANDIDATE_LANGUAGE_CUDA". INVALID_ARGUMENT for the first value that none is meant by,
// with those there are, and for the first key that is none, with the nearest or all.
absl::Status CorrectSpelling(const google::protobuf::Descriptor& type, nlohmann::json* json);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_JSON_SPELLING_H_
