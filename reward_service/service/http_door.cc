#include "reward_service/service/http_door.h"

#include <google/protobuf/util/json_util.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/status.h"

namespace warpsmith {
namespace {

constexpr size_t kListMax = 256;
constexpr size_t kMessageBytesMax = 512;

absl::Status ParseJson(const std::string& text, google::protobuf::Message* message) {
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, message);
  if (parsed.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the body is not a ", message->GetDescriptor()->name(),
      " in JSON: ", Escape(std::string(parsed.message().data(), parsed.message().size()), kMessageBytesMax)));
}

std::string ToJson(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  const auto printed = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!printed.ok()) LogError(absl::StrCat("a message has no JSON: ", printed.ToString()));
  return text;
}

HttpResponse JsonResponse(const google::protobuf::Message& message) { return {.body = ToJson(message)}; }

nlohmann::json ErrorJson(const absl::Status& status) {
  nlohmann::json error = {{"code", static_cast<int>(status.code())},
                          {"status", absl::StatusCodeToString(status.code())},
                          {"message", std::string(status.message())}};
  if (const std::optional<absl::Duration> delay = GetRetryDelay(status); delay.has_value()) {
    error["retryDelayMs"] = absl::ToInt64Milliseconds(*delay);
  }
  return error;
}

// One request of a body on its way: cancelled with its exchange.
struct Pending {
  absl::Mutex mutex;
  std::vector<uint64_t> tickets ABSL_GUARDED_BY(mutex);
  bool abandoned ABSL_GUARDED_BY(mutex) = false;
};

// Hands a request to the grader so that abandoning the exchange cancels it.
void Submit(Grader* grader, PreparedRequest prepared, const std::shared_ptr<Pending>& pending,
            GradeDone done) {
  const uint64_t ticket =
      grader->Submit(std::make_shared<const PreparedRequest>(std::move(prepared)), std::move(done));
  bool unwanted = false;
  {
    absl::MutexLock lock(&pending->mutex);
    pending->tickets.push_back(ticket);
    unwanted = pending->abandoned;
  }
  if (unwanted) grader->Cancel(ticket);
}

void CancelWhenAbandoned(Grader* grader, const std::shared_ptr<Pending>& pending, HttpExchange* exchange) {
  exchange->OnAbandoned([grader, pending] {
    std::vector<uint64_t> tickets;
    {
      absl::MutexLock lock(&pending->mutex);
      pending->abandoned = true;
      tickets.swap(pending->tickets);
    }
    for (const uint64_t ticket : tickets) grader->Cancel(ticket);
  });
}

// The answers of a list, sent when the last has come.
class ListAnswer {
 public:
  ListAnswer(std::shared_ptr<HttpExchange> exchange, size_t num_requests)
      : exchange_(std::move(exchange)), answers_(num_requests), num_open_(num_requests) {}

  void Set(size_t index, const std::string& request_id, const absl::StatusOr<v1::Grade>& grade) {
    {
      absl::MutexLock lock(&mutex_);
      answers_[index] = grade.ok() ? absl::StrCat("{\"requestId\":", nlohmann::json(request_id).dump(),
                                                  ",\"grade\":", ToJson(*grade), "}")
                                   : absl::StrCat("{\"requestId\":", nlohmann::json(request_id).dump(),
                                                  ",\"error\":", ErrorJson(grade.status()).dump(), "}");
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

HttpResponse ErrorResponse(const absl::Status& status) {
  HttpResponse response{.status = HttpStatusOf(status.code())};
  response.body = nlohmann::json{{"error", ErrorJson(status)}}.dump();
  if (const std::optional<absl::Duration> delay = GetRetryDelay(status); delay.has_value()) {
    // Whole seconds, at least one: what the header can say.
    response.headers.emplace_back("Retry-After",
                                  absl::StrCat(std::max<int64_t>(1, absl::ToInt64Seconds(*delay))));
  }
  return response;
}

void HttpDoor::Handle(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  const bool is_get = request.method == "GET", is_post = request.method == "POST";
  if (is_post && request.path == "/v1/grade") return Grade(exchange);
  if (is_post && request.path == "/v1/grades") return GradeList(exchange);
  if (is_get && request.path == "/v1/capabilities")
    return exchange->Respond(JsonResponse(options_.capabilities));
  if (is_get && request.path == "/healthz") {
    return exchange->Respond({.content_type = "text/plain", .body = "serving\n"});
  }
  exchange->Respond(ErrorResponse(absl::NotFoundError(
      absl::StrCat("there is no ", Escape(request.method, 16), " ", Escape(request.path, 128),
                   "; there are POST /v1/grade, POST /v1/grades, GET /v1/capabilities and GET /healthz"))));
}

void HttpDoor::Grade(const std::shared_ptr<HttpExchange>& exchange) {
  v1::GradeRequest request;
  if (const absl::Status status = ParseJson(exchange->request().body, &request); !status.ok()) {
    return exchange->Respond(ErrorResponse(status));
  }
  absl::StatusOr<PreparedRequest> prepared =
      PrepareRequest(request, options_.limits, options_.environment_key);
  if (!prepared.ok()) return exchange->Respond(ErrorResponse(prepared.status()));
  const auto pending = std::make_shared<Pending>();
  Submit(grader_, *std::move(prepared), pending, [exchange](absl::StatusOr<v1::Grade> grade) {
    exchange->Respond(grade.ok() ? JsonResponse(*grade) : ErrorResponse(grade.status()));
  });
  CancelWhenAbandoned(grader_, pending, exchange.get());
}

void HttpDoor::GradeList(const std::shared_ptr<HttpExchange>& exchange) {
  const absl::StatusOr<std::vector<v1::GradeRequest>> requests = ParseList(exchange->request().body);
  if (!requests.ok()) return exchange->Respond(ErrorResponse(requests.status()));
  const auto answer = std::make_shared<ListAnswer>(exchange, requests->size());
  const auto pending = std::make_shared<Pending>();
  for (size_t i = 0; i < requests->size(); ++i) {
    const std::string& id = (*requests)[i].request_id();
    absl::StatusOr<PreparedRequest> prepared =
        PrepareRequest((*requests)[i], options_.limits, options_.environment_key);
    if (!prepared.ok()) {
      answer->Set(i, id, prepared.status());
      continue;
    }
    Submit(grader_, *std::move(prepared), pending,
           [answer, i, id](absl::StatusOr<v1::Grade> grade) { answer->Set(i, id, grade); });
  }
  CancelWhenAbandoned(grader_, pending, exchange.get());
}

}  // namespace warpsmith
