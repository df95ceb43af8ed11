#include "rollout_workers/openai_api/api_error.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/utf8.h"
#include "core/rpc/status.h"

namespace warpsmith::openai {
namespace {

using Json = nlohmann::json;

constexpr char kParamUrl[] = "warpsmith/openai_api.param";
constexpr char kCodeUrl[] = "warpsmith/openai_api.code";

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

const char* TypeOf(int http_status) {
  if (http_status >= 500) return "server_error";
  return http_status == 429 ? "rate_limit_error" : "invalid_request_error";
}

Json PayloadOf(const absl::Status& status, const char* url) {
  const absl::optional<absl::Cord> payload = status.GetPayload(url);
  return payload.has_value() ? Json(std::string(*payload)) : Json();
}

}  // namespace

absl::Status FieldError(std::string_view field, std::string_view message) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(AbslView(field), " ", AbslView(message)));
  status.SetPayload(kParamUrl, absl::Cord(AbslView(field)));
  return status;
}

void SetApiCode(absl::Status* status, std::string_view code) {
  status->SetPayload(kCodeUrl, absl::Cord(AbslView(code)));
}

std::string ApiErrorBody(const absl::Status& status) {
  const Json error = {{"message", ReplaceInvalidUtf8(StdView(status.message()))},
                      {"type", TypeOf(HttpStatusOf(status.code()))},
                      {"param", PayloadOf(status, kParamUrl)},
                      {"code", PayloadOf(status, kCodeUrl)}};
  return Json{{"error", error}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpResponse ApiErrorResponse(const absl::Status& status) {
  HttpResponse response{.status = HttpStatusOf(status.code()), .body = ApiErrorBody(status)};
  if (response.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (const std::optional<absl::Duration> delay = GetRetryDelay(status); delay.has_value()) {
    // The header holds whole seconds. Rounded up, because a client that comes too early is refused again.
    const absl::Duration whole = std::max(absl::Ceil(*delay, absl::Seconds(1)), absl::Seconds(1));
    response.headers.emplace_back("Retry-After", absl::StrCat(absl::ToInt64Seconds(whole)));
  }
  return response;
}

}  // namespace warpsmith::openai
