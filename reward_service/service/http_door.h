// The HTTP/JSON door: the requests of the gRPC one, for those that post. docs/openapi.yaml describes it.
#ifndef WARPSMITH_REWARD_SERVICE_SERVICE_HTTP_DOOR_H_
#define WARPSMITH_REWARD_SERVICE_SERVICE_HTTP_DOOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/rpc/http_server.h"
#include "reward_service/service/door.h"

namespace warpsmith {

// The HTTP status that stands for `code`, as google.rpc maps them.
int HttpStatusOf(absl::StatusCode code);

// An error as both doors tell it: {"error": {"code", "status", "message", "retryDelayMs"}}, with Retry-After
// where the request may be sent again.
HttpResponse ErrorResponse(const absl::Status& status);

// Handles requests without blocking: POST /v1/grade, POST /v1/grades (a list), GET /v1/capabilities, GET
// /healthz. `grader` must outlive the server that this is the handler of.
class HttpDoor {
 public:
  HttpDoor(DoorOptions options, Grader* grader) : options_(std::move(options)), grader_(grader) {}

  void Handle(const std::shared_ptr<HttpExchange>& exchange);

 private:
  void Grade(const std::shared_ptr<HttpExchange>& exchange);
  void GradeList(const std::shared_ptr<HttpExchange>& exchange);

  const DoorOptions options_;
  Grader* const grader_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVICE_HTTP_DOOR_H_
