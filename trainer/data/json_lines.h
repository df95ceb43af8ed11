// Files of one JSON object a line.
#ifndef WARPSMITH_TRAINER_DATA_JSON_LINES_H_
#define WARPSMITH_TRAINER_DATA_JSON_LINES_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace warpsmith {

// One object and where it came from, for messages.
class JsonLine {
 public:
  JsonLine(std::string place, std::shared_ptr<const nlohmann::json> object);

  // The string under `key`; INVALID_ARGUMENT if it is missing or no string.
  absl::StatusOr<std::string> Text(const std::string& key) const;
  std::string TextOr(const std::string& key, const std::string& fallback) const;
  absl::StatusOr<std::vector<std::string>> TextsOr(const std::string& key,
                                                   std::vector<std::string> fallback) const;

  // The object under `key`, whose messages name it; INVALID_ARGUMENT if it is missing or no object.
  absl::StatusOr<JsonLine> Object(const std::string& key) const;

  // The value under `key`, or nothing if there is none.
  const nlohmann::json* Find(const std::string& key) const;

  // INVALID_ARGUMENT with file, line and `message`.
  absl::Status Error(const std::string& message) const;

 private:
  std::string place_;
  std::shared_ptr<const nlohmann::json> object_;
};

// All lines of the file, empty ones skipped. The errors of ReadFile; INVALID_ARGUMENT for a line that is no
// object.
absl::StatusOr<std::vector<JsonLine>> ReadJsonLines(const std::filesystem::path& path);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_DATA_JSON_LINES_H_
