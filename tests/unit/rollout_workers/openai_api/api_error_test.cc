#include "rollout_workers/openai_api/api_error.h"

#include <nlohmann/json.hpp>

#include "core/rpc/status.h"
#include "tests/support/catch.h"

namespace warpsmith::openai {
namespace {

using Json = nlohmann::json;

Json ErrorOf(const absl::Status& status) { return Json::parse(ApiErrorBody(status))["error"]; }

}  // namespace

TEST_CASE("a fault of a field names the field") {
  const Json error = ErrorOf(FieldError("top_k", "is -2; give 0 or more"));
  CHECK(error == Json{{"message", "top_k is -2; give 0 or more"},
                      {"type", "invalid_request_error"},
                      {"param", "top_k"},
                      {"code", nullptr}});
}

TEST_CASE("a code is shown, and messages of others cannot break the JSON") {
  absl::Status status = absl::NotFoundError("no model \"\xff\"");
  SetApiCode(&status, "model_not_found");
  const HttpResponse response = ApiErrorResponse(status);
  CHECK(response.status == 404);
  CHECK(Json::parse(response.body)["error"]["code"] == "model_not_found");
  CHECK(Json::parse(response.body)["error"]["message"] == "no model \"\uFFFD\"");
}

TEST_CASE("codes have the statuses and types that clients know") {
  const auto check = [](const absl::Status& status, int http_status, const std::string& type) {
    CHECK(ApiErrorResponse(status).status == http_status);
    CHECK(ErrorOf(status)["type"] == type);
  };
  check(absl::InvalidArgumentError(""), 400, "invalid_request_error");
  check(absl::UnimplementedError(""), 400, "invalid_request_error");
  check(absl::UnauthenticatedError(""), 401, "invalid_request_error");
  check(absl::ResourceExhaustedError(""), 429, "rate_limit_error");
  check(absl::UnavailableError(""), 503, "server_error");
  check(absl::InternalError(""), 500, "server_error");
}

TEST_CASE("who may come again is told when, in whole seconds upwards") {
  const HttpResponse response = ApiErrorResponse(BackPressureError("full", absl::Milliseconds(1200)));
  REQUIRE(response.headers.size() == 1);
  CHECK(response.headers[0] == std::pair<std::string, std::string>("Retry-After", "2"));
  CHECK(ApiErrorResponse(absl::InternalError("")).headers.empty());
}

}  // namespace warpsmith::openai
