// Messages as the JSON that the HTTP door speaks: the standard mapping of proto3.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_JSON_TEXT_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_JSON_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace warpsmith {

// Numbers and strings also where they have their default.
std::string ToJson(const google::protobuf::Message& message);

// Enum values may be spelt as CorrectSpelling() takes them. INVALID_ARGUMENT for what is no such message, unknown keys
// included, with what is accepted in place of a name that is none, else with what the parser says.
absl::Status ParseJson(const std::string& text, google::protobuf::Message* message);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_JSON_TEXT_H_
