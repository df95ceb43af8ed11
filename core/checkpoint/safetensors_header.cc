#include "core/checkpoint/safetensors_header.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/utf8.h"
#include "core/checkpoint/strict_json.h"

namespace warpsmith {
namespace {

using Json = nlohmann::ordered_json;
using Entry = SafetensorsHeader::Entry;

constexpr char kMetadataKey[] = "__metadata__";
constexpr size_t kAlignmentBytes = 8;

absl::Status Invalid(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor \"", Escape(name, 200), "\" ", what));
}

std::string ShowShape(const TensorInfo& info) {
  return absl::StrCat(AbslView(TensorTypeName(info.type)), "[", absl::StrJoin(info.shape, ", "), "]");
}

// A whole number that is not negative.
bool ReadCount(const Json& json, int64_t* count) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > INT64_MAX) return false;
  *count = json.get<int64_t>();
  return true;
}

absl::Status ReadShape(const Json& json, TensorInfo* info) {
  if (!json.is_array()) return Invalid(info->name, "has no list as shape");
  for (const Json& element : json) {
    int64_t dimension = 0;
    if (!ReadCount(element, &dimension))
      return Invalid(info->name, "has a shape that is not of whole numbers");
    info->shape.push_back(dimension);
  }
  return absl::OkStatus();
}

absl::Status ReadOffsets(const Json& json, Entry* entry) {
  const bool is_pair = json.is_array() && json.size() == 2;
  if (!is_pair || !ReadCount(json[0], &entry->begin) || !ReadCount(json[1], &entry->end) ||
      entry->begin > entry->end) {
    return Invalid(entry->info.name, "has data_offsets that are not [begin, end]");
  }
  return absl::OkStatus();
}

absl::Status CheckSize(const Entry& entry) {
  const std::optional<int64_t> bytes = TensorBytes(entry.info);
  if (!bytes.has_value())
    return Invalid(entry.info.name, "has more bytes than can be: " + ShowShape(entry.info));
  if (*bytes == entry.end - entry.begin) return absl::OkStatus();
  return Invalid(entry.info.name,
                 absl::StrCat("is ", ShowShape(entry.info), " of ", *bytes, " bytes, but its data_offsets [",
                              entry.begin, ", ", entry.end, "] hold ", entry.end - entry.begin));
}

absl::StatusOr<Entry> ReadEntry(const std::string& name, const Json& json) {
  Entry entry;
  entry.info.name = name;
  for (const char* member : {"dtype", "shape", "data_offsets"}) {
    if (!json.is_object() || !json.contains(member)) return Invalid(name, absl::StrCat("has no ", member));
  }
  const Json& type_name = json["dtype"];
  const auto type =
      type_name.is_string() ? TensorTypeFromName(type_name.get_ref<const std::string&>()) : std::nullopt;
  if (!type.has_value()) {
    return Invalid(name, "has an unknown dtype " +
                             Escape(type_name.dump(-1, ' ', true, Json::error_handler_t::replace), 100));
  }
  entry.info.type = *type;
  RETURN_IF_ERROR(ReadShape(json["shape"], &entry.info));
  RETURN_IF_ERROR(ReadOffsets(json["data_offsets"], &entry));
  RETURN_IF_ERROR(CheckSize(entry));
  return entry;
}

absl::Status ReadMetadata(const Json& json, TensorMetadata* metadata) {
  if (!json.is_object()) return absl::InvalidArgumentError("__metadata__ is not an object");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat("__metadata__ has no text under \"", Escape(key, 100), "\""));
    }
    (*metadata)[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

absl::Status CheckCover(const std::vector<Entry>& entries, int64_t data_bytes) {
  int64_t covered = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != covered) {
      return Invalid(entry.info.name,
                     absl::StrCat("begins at byte ", entry.begin, " of the data, but the one before ends at ",
                                  covered, entry.begin < covered ? ": they overlap" : ": there is a gap"));
    }
    covered = entry.end;
  }
  if (covered == data_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the tensors want ", covered, " bytes, but the file holds ", data_bytes,
                   covered > data_bytes ? ": it was cut short" : ": something follows them"));
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json_text, int64_t data_bytes) {
  ASSIGN_OR_RETURN(const Json json, ParseStrictJson(json_text));
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadataKey) {
      RETURN_IF_ERROR(ReadMetadata(value, &header.metadata));
      continue;
    }
    ASSIGN_OR_RETURN(Entry entry, ReadEntry(name, value));
    header.entries.push_back(std::move(entry));
  }
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  RETURN_IF_ERROR(CheckCover(header.entries, data_bytes));
  return header;
}

absl::StatusOr<std::string> FormatSafetensorsHeader(const std::vector<TensorInfo>& tensors,
                                                    const TensorMetadata& metadata) {
  Json json = Json::object();
  if (!metadata.empty()) json[kMetadataKey] = metadata;
  std::set<std::string> names;
  int64_t offset = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == kMetadataKey || !IsValidUtf8(tensor.name)) {
      return Invalid(tensor.name, "has a name that cannot be written");
    }
    if (!names.insert(tensor.name).second) return Invalid(tensor.name, "is given twice");
    const std::optional<int64_t> bytes = TensorBytes(tensor);
    int64_t end = 0;
    if (!bytes.has_value() || __builtin_add_overflow(offset, *bytes, &end)) {
      return Invalid(tensor.name, "has more bytes than can be: " + ShowShape(tensor));
    }
    json[tensor.name] = {{"dtype", std::string(TensorTypeName(tensor.type))},
                         {"shape", tensor.shape},
                         {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((kAlignmentBytes - text.size() % kAlignmentBytes) % kAlignmentBytes, ' ');
  if (static_cast<int64_t>(text.size()) > kSafetensorsHeaderBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the header of ", tensors.size(), " tensors is too long"));
  }
  std::string length;
  for (int shift = 0; shift < 64; shift += 8)
    length.push_back(static_cast<char>(text.size() >> shift & 0xff));
  return length + text;
}

}  // namespace warpsmith
