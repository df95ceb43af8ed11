#include "reward_service/server/json_text.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "core/base/json_depth.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

constexpr size_t kReasonBytesMax = 512;

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
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, message);
  if (parsed.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the body is not a ", message->GetDescriptor()->name(),
      " in JSON: ", Escape(std::string(parsed.message().data(), parsed.message().size()), kReasonBytesMax)));
}

}  // namespace warpsmith
