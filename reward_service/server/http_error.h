// Errors as the HTTP door tells them.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_HTTP_ERROR_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_HTTP_ERROR_H_

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "core/rpc/http_server.h"

namespace warpsmith {

// The HTTP status that stands for `code`, as google.rpc maps them.
int HttpStatusOf(absl::StatusCode code);

// {"code", "status", "message", "retryDelayMs"}.
nlohmann::json ErrorJson(const absl::Status& status);

// {"error": ErrorJson}, with Retry-After where the request may be sent again.
HttpResponse ErrorResponse(const absl::Status& status);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_HTTP_ERROR_H_
