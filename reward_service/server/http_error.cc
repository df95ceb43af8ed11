#include "reward_service/server/http_error.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/rpc/status.h"

namespace warpsmith {

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

nlohmann::json ErrorJson(const absl::Status& status) {
  nlohmann::json error = {{"code", static_cast<int>(status.code())},
                          {"status", absl::StatusCodeToString(status.code())},
                          {"message", std::string(status.message())}};
  if (const std::optional<absl::Duration> delay = GetRetryDelay(status); delay.has_value()) {
    error["retryDelayMs"] = absl::ToInt64Milliseconds(*delay);
  }
  return error;
}

HttpResponse ErrorResponse(const absl::Status& status) {
  HttpResponse response{.status = HttpStatusOf(status.code())};
  response.body = nlohmann::json{{"error", ErrorJson(status)}}.dump();
  if (const std::optional<absl::Duration> delay = GetRetryDelay(status); delay.has_value()) {
    // What the header can say are whole seconds: upwards, for who comes too early is refused again.
    const absl::Duration whole = std::max(absl::Ceil(*delay, absl::Seconds(1)), absl::Seconds(1));
    response.headers.emplace_back("Retry-After", absl::StrCat(absl::ToInt64Seconds(whole)));
  }
  return response;
}

HttpResponse RefusalResponse(int http_status, const std::string& reason) {
  HttpResponse response = ErrorResponse(absl::InvalidArgumentError(reason));
  response.status = http_status;
  return response;
}

}  // namespace warpsmith
