// The HTTP/JSON door: the requests of the gRPC one, for those that post. docs/openapi.yaml describes it.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_HTTP_DOOR_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_HTTP_DOOR_H_

#include <memory>
#include <utility>

#include "core/rpc/http_server.h"
#include "reward_service/server/page_door.h"
#include "reward_service/server/reception.h"

namespace warpsmith {

// Handles requests without blocking: POST /v1/grade, POST /v1/grades (a list), GET /v1/capabilities, GET
// /metrics, GET /healthz, and what the page needs. All but /healthz and the page's own files want a caller
// that Reception::Identify knows. `reception` must outlive the server that this is the handler of.
class HttpDoor {
 public:
  HttpDoor(const Reception* reception, PageFiles page)
      : reception_(reception), page_(reception, std::move(page)) {}

  void Handle(const std::shared_ptr<HttpExchange>& exchange) const;

 private:
  void HandleOfTenant(const std::shared_ptr<const Tenant>& tenant,
                      const std::shared_ptr<HttpExchange>& exchange) const;
  void Grade(const std::shared_ptr<const Tenant>& tenant,
             const std::shared_ptr<HttpExchange>& exchange) const;
  void GradeList(const std::shared_ptr<const Tenant>& tenant,
                 const std::shared_ptr<HttpExchange>& exchange) const;

  const Reception* const reception_;
  const PageDoor page_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_HTTP_DOOR_H_
