#include "reward_service/server/json_text.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/absl_view.h"
#include "core/base/json_depth.h"
#include "core/base/log.h"
#include "reward_service/server/json_spelling.h"

namespace warpsmith {
namespace {

constexpr size_t kReasonBytesMax = 512;

absl::Status NotInJson(const google::protobuf::Message& message, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("the body is not a ", message.GetDescriptor()->name(),
                                                 " in JSON: ", Escape(StdView(reason), kReasonBytesMax)));
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  const auto printed = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!printed.ok()) LogError(absl::StrCat("a message has no JSON: ", printed.ToString()));
  return text;
}

absl::Status ParseJson(const std::string& text, google::protobuf::Message* message) {
  if (NestsDeeperThan(text)) return absl::InvalidArgumentError("the body nests too deeply");
  if (HasNul(text)) return absl::InvalidArgumentError("the body has a NUL byte, which JSON has not");
  auto parsed = google::protobuf::util::JsonStringToMessage(text, message);
  if (parsed.ok()) return absl::OkStatus();
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) {
    const absl::Status corrected = CorrectSpelling(*message->GetDescriptor(), &json);
    if (!corrected.ok()) return NotInJson(*message, corrected.message());
    parsed = google::protobuf::util::JsonStringToMessage(json.dump(), message);
    if (parsed.ok()) return absl::OkStatus();
  }
  return NotInJson(*message, {parsed.message().data(), parsed.message().size()});
}

}  // namespace warpsmith
