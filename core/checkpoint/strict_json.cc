#include "core/checkpoint/strict_json.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/json_depth.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

using Json = nlohmann::ordered_json;

// Sees the keys of every object as it is parsed, and remembers the first that comes twice.
class DuplicateFinder {
 public:
  void Observe(Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_objects_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects_.pop_back();
    if (event != Json::parse_event_t::key) return;
    const auto& key = parsed.get_ref<const std::string&>();
    if (!open_objects_.back().insert(key).second && duplicate_.empty()) duplicate_ = Escape(key, 200);
  }

  const std::string& duplicate() const { return duplicate_; }

 private:
  std::vector<std::set<std::string>> open_objects_;
  std::string duplicate_;
};

}  // namespace

absl::StatusOr<Json> ParseStrictJson(std::string_view text) {
  if (NestsDeeperThan(text)) return absl::InvalidArgumentError("nests too deeply");
  DuplicateFinder finder;
  const auto observe = [&finder](int, Json::parse_event_t event, Json& parsed) {
    finder.Observe(event, parsed);
    return true;
  };
  try {
    Json json = Json::parse(text, observe);
    if (!json.is_object()) return absl::InvalidArgumentError("holds no JSON object");
    if (!finder.duplicate().empty()) {
      return absl::InvalidArgumentError(absl::StrCat("gives \"", finder.duplicate(), "\" twice"));
    }
    return json;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("is not JSON: ", Escape(error.what(), 300)));
  }
}

}  // namespace warpsmith
