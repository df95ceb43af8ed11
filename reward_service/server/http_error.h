// Errors as the HTTP door tells them.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_HTTP_ERROR_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_HTTP_ERROR_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "core/rpc/http_server.h"

namespace warpsmith {

// The HTTP status that stands for `code`, as google.rpc maps them.
int HttpStatusOf(absl::StatusCode code);

// {"code", "status", "message", "retryDelayMs"}.
nlohmann::json ErrorJson(const absl::Status& status);

// {"error": ErrorJson}, with Retry-After where the request may be sent again.
HttpResponse ErrorResponse(const absl::Status& status);

// The same for what is over a limit of the HTTP server's, or no request: INVALID_ARGUMENT, with that HTTP status.
HttpResponse RefusalResponse(int http_status, const std::string& reason);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_HTTP_ERROR_H_
