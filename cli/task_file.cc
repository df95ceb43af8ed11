#include "cli/task_file.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/utf8.h"
#include "core/config/nearest_name.h"
#include "proto/device_names.h"
#include "proto/language_names.h"

namespace warpsmith {
namespace {

using google::protobuf::Struct;

constexpr int64_t kFileBytesMax = int64_t{1} << 30;
constexpr std::string_view kSuffix = ".jsonl";

std::string TextOr(const Struct& line, const std::string& key, const std::string& fallback) {
  const auto found = line.fields().find(key);
  return found == line.fields().end() ? fallback : found->second.string_value();
}

absl::StatusOr<v1::Task> ParseTask(const std::string& place, const Struct& line,
                                   v1::CandidateLanguage language) {
  const std::string skill = TextOr(line, "skill", "generate");
  if (skill != "generate") {
    return absl::InvalidArgumentError(absl::StrCat(place, ": a task of the skill \"", Escape(skill, 100),
                                                   "\"; give it as a Task in a .json file"));
  }
  const std::string wanted = TextOr(line, "language", LanguageName(language));
  if (wanted != LanguageName(language)) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": a task in \"", Escape(wanted, 100), "\"; give that as --language"));
  }
  const std::string device = TextOr(line, "device", "");
  if (!device.empty() && DeviceOfName(device) == v1::DEVICE_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": the device \"", Escape(device, 100), "\" is not known: ", AllDeviceNames()));
  }
  v1::Task task;
  task.set_device(DeviceOfName(device));
  task.set_id(TextOr(line, "id", ""));
  task.set_skill(v1::SKILL_GENERATE);
  task.set_language(language);
  task.set_family(TextOr(line, "family", ""));
  task.set_reference_source(TextOr(line, "reference_source", ""));
  if (task.reference_source().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": \"reference_source\" must be a string"));
  }
  if (const auto found = line.fields().find("allowed_libraries"); found != line.fields().end()) {
    if (!found->second.has_list_value() && !found->second.has_null_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": \"allowed_libraries\" must be a list of strings"));
    }
    for (const auto& library : found->second.list_value().values()) {
      task.add_allowed_libraries(library.string_value());
    }
  }
  return task;
}

absl::Status NoSuchTask(const TaskAddress& address, const std::vector<std::string>& ids) {
  const std::string path = address.path.string();
  if (ids.empty()) return absl::NotFoundError(absl::StrCat(path, ": holds no task"));
  if (address.id.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": name one of its ", ids.size(), " tasks, e.g. ",
                                                   path, "#", Escape(ids.front(), 128)));
  }
  const std::string nearest = NearestName(address.id, ids);
  return absl::NotFoundError(
      absl::StrCat(path, ": none of its ", ids.size(), " tasks is \"", Escape(address.id, 128), "\"; ",
                   nearest.empty() ? "the first is \"" : "did you mean \"",
                   Escape(nearest.empty() ? ids.front() : nearest, 128), "\"", nearest.empty() ? "" : "?"));
}

}  // namespace

std::optional<TaskAddress> ParseTaskAddress(const std::string& text) {
  const size_t suffix = text.find(std::string(kSuffix) + "#");
  if (suffix != std::string::npos) {
    const size_t path_end = suffix + kSuffix.size();
    return TaskAddress{.path = text.substr(0, path_end), .id = text.substr(path_end + 1)};
  }
  if (std::filesystem::path(text).extension() == kSuffix) return TaskAddress{.path = text};
  return std::nullopt;
}

absl::StatusOr<v1::Task> ReadTaskLine(const TaskAddress& address, v1::CandidateLanguage language) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(address.path, kFileBytesMax));
  std::vector<std::string> ids;
  int number = 0;
  for (const absl::string_view part : absl::StrSplit(text, '\n')) {
    const std::string place = absl::StrCat(address.path.string(), ":", ++number);
    if (absl::StripAsciiWhitespace(part).empty()) continue;
    Struct line;
    const std::string json(WithoutByteOrderMark({part.data(), part.size()}));
    const auto parsed = google::protobuf::util::JsonStringToMessage(json, &line);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": is no JSON: ", parsed.ToString()));
    }
    ids.push_back(TextOr(line, "id", ""));
    if (!address.id.empty() && ids.back() == address.id) return ParseTask(place, line, language);
  }
  return NoSuchTask(address, ids);
}

}  // namespace warpsmith
