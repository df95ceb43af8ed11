// Errors as OpenAI's API tells them: {"error": {"message", "type", "param", "code"}}.
#ifndef WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_API_ERROR_H_
#define WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_API_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/rpc/http_server.h"

namespace warpsmith::openai {

// INVALID_ARGUMENT, with the field at fault as "param".
absl::Status FieldError(std::string_view field, std::string_view message);

// Names the error for programs, as "code": "model_not_found", ...
void SetApiCode(absl::Status* status, std::string_view code);

// The body of an error. "type" is invalid_request_error where the request is at fault, rate_limit_error where
// it may come again, else server_error; "param" and "code" are null where they are not set.
std::string ApiErrorBody(const absl::Status& status);

// The answer: 400 for INVALID_ARGUMENT and UNIMPLEMENTED, 401, 404, 429 for RESOURCE_EXHAUSTED, 503 for
// UNAVAILABLE, else 500; with Retry-After where the status says when to come back (core/rpc/status.h).
HttpResponse ApiErrorResponse(const absl::Status& status);

}  // namespace warpsmith::openai

#endif  // WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_API_ERROR_H_
