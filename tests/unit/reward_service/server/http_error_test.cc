#include "reward_service/server/http_error.h"

#include "core/rpc/status.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("every code has the HTTP status that google.rpc gives it") {
  CHECK(HttpStatusOf(absl::StatusCode::kOk) == 200);
  CHECK(HttpStatusOf(absl::StatusCode::kInvalidArgument) == 400);
  CHECK(HttpStatusOf(absl::StatusCode::kFailedPrecondition) == 400);
  CHECK(HttpStatusOf(absl::StatusCode::kUnauthenticated) == 401);
  CHECK(HttpStatusOf(absl::StatusCode::kNotFound) == 404);
  CHECK(HttpStatusOf(absl::StatusCode::kResourceExhausted) == 429);
  CHECK(HttpStatusOf(absl::StatusCode::kUnavailable) == 503);
  CHECK(HttpStatusOf(absl::StatusCode::kInternal) == 500);
}

TEST_CASE("an error tells its code and words, and when to come again in whole seconds") {
  const HttpResponse refused = ErrorResponse(absl::InvalidArgumentError("say \"what\""));
  CHECK(refused.status == 400);
  CHECK(nlohmann::json::parse(refused.body)["error"]["message"] == "say \"what\"");
  CHECK(refused.headers.empty());
  const HttpResponse later = ErrorResponse(BackPressureError("full", absl::Milliseconds(2500)));
  CHECK(later.status == 429);
  REQUIRE(later.headers.size() == 1);
  CHECK(later.headers[0].second == "3");
  CHECK(nlohmann::json::parse(later.body)["error"]["retryDelayMs"] == 2500);
  CHECK(ErrorResponse(BackPressureError("full", absl::Milliseconds(200))).headers[0].second == "1");
  CHECK(ErrorResponse(BackPressureError("full", absl::Seconds(30))).headers[0].second == "30");
}

TEST_CASE("what is too large for the server is told as other errors are, with its own status") {
  const HttpResponse refused = RefusalResponse(413, "a body may have 10 bytes");
  CHECK(refused.status == 413);
  CHECK(refused.content_type == ErrorResponse(absl::InternalError("")).content_type);
  const nlohmann::json error = nlohmann::json::parse(refused.body)["error"];
  CHECK(error["status"] == "INVALID_ARGUMENT");
  CHECK(error["message"] == "a body may have 10 bytes");
}

}  // namespace
}  // namespace warpsmith
