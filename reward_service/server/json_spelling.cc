#include "reward_service/server/json_spelling.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/config/nearest_name.h"
#include "proto/enum_names.h"

namespace warpsmith {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using nlohmann::json;

constexpr size_t kShownBytesMax = 100;

// The field under `key`, by either of the names that protobuf takes; null for none.
const FieldDescriptor* FindField(const Descriptor& type, const std::string& key) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* const field = type.field(i);
    if (field->name() == key || field->json_name() == key) return field;
  }
  return nullptr;
}

std::vector<std::string> KeysOf(const Descriptor& type) {
  std::vector<std::string> keys;
  keys.reserve(static_cast<size_t>(type.field_count()));
  for (int i = 0; i < type.field_count(); ++i) keys.push_back(type.field(i)->json_name());
  return keys;
}

// Null where no value is meant.
const EnumValueDescriptor* FindValue(const EnumDescriptor& values, const std::string& text) {
  if (const EnumValueDescriptor* const exact = values.FindValueByName(text)) return exact;
  const std::string name = absl::StrReplaceAll(absl::AsciiStrToLower(text), {{"-", "_"}});
  if (const int number = EnumOfName(values, name); number != 0) return values.FindValueByNumber(number);
  return values.FindValueByName(absl::AsciiStrToUpper(name));
}

absl::Status CorrectMessage(const Descriptor& type, const std::string& path, json* message);

// `value` of one field, or one of its values where it has several. What has another JSON type is protobuf's to refuse.
absl::Status CorrectValue(const FieldDescriptor& field, const std::string& path, json* value) {
  if (field.message_type() != nullptr) return CorrectMessage(*field.message_type(), path, value);
  if (field.enum_type() == nullptr || !value->is_string()) return absl::OkStatus();
  const auto& text = value->get_ref<const std::string&>();
  if (int32_t number = 0; absl::SimpleAtoi(text, &number)) return absl::OkStatus();
  const EnumValueDescriptor* const meant = FindValue(*field.enum_type(), text);
  if (meant == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is \"", Escape(text, kShownBytesMax), "\"; use ",
                                                   AllEnumNames(*field.enum_type())));
  }
  *value = meant->name();
  return absl::OkStatus();
}

absl::Status CorrectMessage(const Descriptor& type, const std::string& path, json* message) {
  if (!message->is_object()) return absl::OkStatus();
  for (const auto& entry : message->items()) {
    const std::string place =
        absl::StrCat(path, path.empty() ? "" : ".", Escape(entry.key(), kShownBytesMax));
    const FieldDescriptor* const field = FindField(type, entry.key());
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, " is not a known key", SuggestName(entry.key(), KeysOf(type))));
    }
    json& value = entry.value();
    if (!field->is_repeated() || !value.is_array()) {
      RETURN_IF_ERROR(CorrectValue(*field, place, &value));
      continue;
    }
    for (json& one : value) RETURN_IF_ERROR(CorrectValue(*field, place, &one));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CorrectSpelling(const Descriptor& type, json* json) { return CorrectMessage(type, "", json); }

}  // namespace warpsmith
