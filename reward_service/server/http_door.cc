#include "reward_service/server/http_door.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/json_depth.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/status.h"
#include "reward_service/server/http_error.h"
#include "reward_service/server/json_text.h"

namespace warpsmith {
namespace {

constexpr size_t kListMax = 256;

HttpResponse JsonResponse(const google::protobuf::Message& message) { return {.body = ToJson(message)}; }

// The answers of a list, sent when the last has come.
class ListAnswer {
 public:
  ListAnswer(std::shared_ptr<HttpExchange> exchange, size_t num_requests)
      : exchange_(std::move(exchange)), answers_(num_requests), num_open_(num_requests) {}

  void Set(size_t index, const std::string& request_id, const absl::StatusOr<v1::Grade>& grade) {
    {
      absl::MutexLock lock(&mutex_);
      const std::string body = grade.ok() ? absl::StrCat("\"grade\":", ToJson(*grade))
                                          : absl::StrCat("\"error\":", ErrorJson(grade.status()).dump());
      answers_[index] = absl::StrCat("{\"requestId\":", nlohmann::json(request_id).dump(), ",", body, "}");
      if (--num_open_ > 0) return;
    }
    Send();
  }

 private:
  void Send() {
    absl::MutexLock lock(&mutex_);
    std::string body = "{\"responses\":[";
    for (size_t i = 0; i < answers_.size(); ++i) absl::StrAppend(&body, i == 0 ? "" : ",", answers_[i]);
    exchange_->Respond({.body = body + "]}"});
  }

  const std::shared_ptr<HttpExchange> exchange_;
  absl::Mutex mutex_;
  std::vector<std::string> answers_ ABSL_GUARDED_BY(mutex_);
  size_t num_open_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::vector<v1::GradeRequest>> ParseList(const std::string& body) {
  if (NestsDeeperThan(body)) return absl::InvalidArgumentError("the body nests too deeply");
  if (HasNul(body)) return absl::InvalidArgumentError("the body has a NUL byte, which JSON has not");
  const nlohmann::json list = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const bool is_list =
      list.is_object() && list.size() == 1 && list.contains("requests") && list["requests"].is_array();
  if (!is_list) return absl::InvalidArgumentError("the body is no {\"requests\": [...]}");
  if (list["requests"].empty() || list["requests"].size() > kListMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(list["requests"].size(), " requests in a list; send 1 to ", kListMax));
  }
  std::vector<v1::GradeRequest> requests(list["requests"].size());
  for (size_t i = 0; i < requests.size(); ++i) {
    RETURN_IF_ERROR(ParseJson(list["requests"][i].dump(), &requests[i]));
  }
  return requests;
}

}  // namespace

void HttpDoor::Handle(const std::shared_ptr<HttpExchange>& exchange) const {
  const HttpRequest& request = exchange->request();
  const bool is_get = request.method == "GET";
  if (is_get && request.path == "/healthz") {
    return exchange->Respond({.content_type = "text/plain", .body = "serving\n"});
  }
  if (is_get && page_.HandleFile(exchange)) return;
  const auto authorization = request.headers.find("authorization");
  const absl::StatusOr<std::shared_ptr<const Tenant>> tenant = reception_->Identify(
      {.authorization = authorization == request.headers.end() ? "" : authorization->second,
       .certificate_name = request.certificate_name});
  if (!tenant.ok()) return exchange->Respond(ErrorResponse(tenant.status()));
  HandleOfTenant(*tenant, exchange);
}

void HttpDoor::HandleOfTenant(const std::shared_ptr<const Tenant>& tenant,
                              const std::shared_ptr<HttpExchange>& exchange) const {
  const HttpRequest& request = exchange->request();
  const bool is_get = request.method == "GET", is_post = request.method == "POST";
  if (is_post && request.path == "/v1/grade") return Grade(tenant, exchange);
  if (is_post && request.path == "/v1/grades") return GradeList(tenant, exchange);
  if (is_get && request.path == "/v1/capabilities") {
    return exchange->Respond(JsonResponse(reception_->capabilities()));
  }
  if (is_get && request.path == "/metrics") {
    return exchange->Respond(
        {.content_type = "text/plain; version=0.0.4", .body = reception_->MetricsText()});
  }
  if (is_get && page_.HandleData(*tenant, exchange)) return;
  exchange->Respond(ErrorResponse(absl::NotFoundError(
      absl::StrCat("there is no ", Escape(request.method, 16), " ", Escape(request.path, 128),
                   "; docs/openapi.yaml says what there is"))));
}

void HttpDoor::Grade(const std::shared_ptr<const Tenant>& tenant,
                     const std::shared_ptr<HttpExchange>& exchange) const {
  v1::GradeRequest request;
  if (const absl::Status status = ParseJson(exchange->request().body, &request); !status.ok()) {
    return exchange->Respond(ErrorResponse(status));
  }
  const auto answer = [exchange](absl::StatusOr<v1::Grade> grade) {
    exchange->Respond(grade.ok() ? JsonResponse(*grade) : ErrorResponse(grade.status()));
  };
  const uint64_t ticket = reception_->Submit(tenant, request, answer);
  exchange->OnAbandoned([reception = reception_, ticket] { reception->Cancel(ticket); });
}

void HttpDoor::GradeList(const std::shared_ptr<const Tenant>& tenant,
                         const std::shared_ptr<HttpExchange>& exchange) const {
  const absl::StatusOr<std::vector<v1::GradeRequest>> requests = ParseList(exchange->request().body);
  if (!requests.ok()) return exchange->Respond(ErrorResponse(requests.status()));
  const auto answer = std::make_shared<ListAnswer>(exchange, requests->size());
  std::vector<uint64_t> tickets;
  for (size_t i = 0; i < requests->size(); ++i) {
    const std::string& id = (*requests)[i].request_id();
    tickets.push_back(reception_->Submit(
        tenant, (*requests)[i],
        [answer, i, id](const absl::StatusOr<v1::Grade>& grade) { answer->Set(i, id, grade); }));
  }
  exchange->OnAbandoned([reception = reception_, tickets = std::move(tickets)] {
    for (const uint64_t ticket : tickets) reception->Cancel(ticket);
  });
}

}  // namespace warpsmith
