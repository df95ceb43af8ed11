#include "trainer/data/json_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/json_depth.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace warpsmith {

JsonLine::JsonLine(std::string place, std::shared_ptr<const nlohmann::json> object)
    : place_(std::move(place)), object_(std::move(object)) {}

absl::StatusOr<std::string> JsonLine::Text(const std::string& key) const {
  const nlohmann::json* value = Find(key);
  if (value == nullptr || !value->is_string()) return Error(absl::StrCat("\"", key, "\" must be a string"));
  return value->get<std::string>();
}

std::string JsonLine::TextOr(const std::string& key, const std::string& fallback) const {
  return Text(key).value_or(fallback);
}

absl::StatusOr<std::vector<std::string>> JsonLine::TextsOr(const std::string& key,
                                                           std::vector<std::string> fallback) const {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return fallback;
  const auto is_text = [](const nlohmann::json& item) { return item.is_string(); };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_text)) {
    return Error(absl::StrCat("\"", key, "\" must be a list of strings"));
  }
  return value->get<std::vector<std::string>>();
}

absl::StatusOr<JsonLine> JsonLine::Object(const std::string& key) const {
  const nlohmann::json* value = Find(key);
  if (value == nullptr || !value->is_object()) return Error(absl::StrCat("\"", key, "\" must be an object"));
  return JsonLine(absl::StrCat(place_, ": ", key), std::make_shared<const nlohmann::json>(*value));
}

const nlohmann::json* JsonLine::Find(const std::string& key) const {
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

absl::Status JsonLine::Error(const std::string& message) const {
  return absl::InvalidArgumentError(absl::StrCat(place_, ": ", message));
}

absl::StatusOr<std::vector<JsonLine>> ReadJsonLines(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<JsonLine> lines;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    auto object =
        std::make_shared<nlohmann::json>(nlohmann::json::parse(line.begin(), line.end(), nullptr, false));
    const std::string place = absl::StrCat(path.string(), ":", number);
    if (!object->is_object() || HasNul({line.data(), line.size()}))
      return absl::InvalidArgumentError(absl::StrCat(place, ": not a JSON object"));
    lines.emplace_back(place, std::move(object));
  }
  return lines;
}

}  // namespace warpsmith
