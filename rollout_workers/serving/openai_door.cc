#include "rollout_workers/serving/openai_door.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/rpc/http_target.h"
#include "core/rpc/status.h"
#include "rollout_workers/openai_api/api_error.h"
#include "rollout_workers/openai_api/completion_reply.h"
#include "rollout_workers/serving/completion_writer.h"

namespace warpsmith::serving {
namespace {

constexpr absl::Duration kLoadingComeBack = absl::Seconds(5);
constexpr std::string_view kModelsPath = "/v1/models";
constexpr size_t kFingerprintDigits = 16;

absl::Status Loading() {
  absl::Status status = absl::UnavailableError("the model is being loaded");
  SetRetryDelay(&status, kLoadingComeBack);
  return status;
}

absl::Status NoSuchPath(const HttpRequest& request) {
  return absl::NotFoundError(absl::StrCat("there is no ", Escape(request.method, 16), " ",
                                          Escape(request.path, 128), "; docs/serving.md says what there is"));
}

absl::Status NoEscape(const HttpRequest& request) {
  return absl::InvalidArgumentError(
      absl::StrCat("the path ", Escape(request.path, 128),
                   " has a % without two hexadecimal digits behind it; a % itself is "
                   "%25"));
}

// The token of "Bearer TOKEN"; the scheme's name in any case (RFC 9110, section 11.1).
std::string TokenOf(const HttpRequest& request) {
  const auto found = request.headers.find("authorization");
  if (found == request.headers.end()) return "";
  constexpr absl::string_view kScheme = "bearer ";
  if (!absl::StartsWithIgnoreCase(found->second, kScheme)) return "";
  return found->second.substr(kScheme.size());
}

std::string Metrics(const EngineStatus& status) {
  return absl::StrFormat(
      "# TYPE warpsmith_serving_active_choices gauge\nwarpsmith_serving_active_choices %d\n"
      "# TYPE warpsmith_serving_waiting_choices gauge\nwarpsmith_serving_waiting_choices %d\n"
      "# TYPE warpsmith_serving_drawn_tokens_total counter\nwarpsmith_serving_drawn_tokens_total %d\n"
      "# TYPE warpsmith_serving_prompt_tokens_total counter\nwarpsmith_serving_prompt_tokens_total %d\n"
      "# TYPE warpsmith_serving_busy_seconds_total counter\nwarpsmith_serving_busy_seconds_total %.3f\n",
      status.num_active_samples, status.num_waiting_samples, status.num_tokens_decoded,
      status.num_tokens_prefilled, absl::ToDoubleSeconds(status.busy));
}

CompletionEvents EventsTo(const std::shared_ptr<CompletionWriter>& writer) {
  return {.on_token = [writer](int choice, const ChosenToken& token) { return writer->Token(choice, token); },
          .on_end = [writer](int choice, FinishReason reason) { writer->End(choice, reason); },
          .on_failure = [writer](const absl::Status& status) { writer->Fail(status); }};
}

}  // namespace

OpenAiDoor::OpenAiDoor(const ServedModel* model, const std::string& token)
    : model_(model), token_sha256_(token.empty() ? "" : Sha256Hex(token)) {}

void OpenAiDoor::Handle(const std::shared_ptr<HttpExchange>& exchange) const {
  const HttpRequest& request = exchange->request();
  const bool is_ready = service_ != nullptr;
  if (request.method == "GET" && request.path == "/health") {
    const absl::Status health = is_ready ? service_.load()->engine().status().lost : Loading();
    return exchange->Respond(health.ok() ? HttpResponse{.content_type = "text/plain", .body = "serving\n"}
                                         : openai::ApiErrorResponse(health));
  }
  if (const absl::Status known = CheckToken(request); !known.ok()) {
    return exchange->Respond(openai::ApiErrorResponse(known));
  }
  is_ready ? HandleKnown(exchange) : exchange->Respond(openai::ApiErrorResponse(Loading()));
}

// The digests are compared, so that the time of a comparison tells nothing of the token.
absl::Status OpenAiDoor::CheckToken(const HttpRequest& request) const {
  if (token_sha256_.empty() || Sha256Hex(TokenOf(request)) == token_sha256_) return absl::OkStatus();
  absl::Status status = absl::UnauthenticatedError(
      "this server does not know the token; send the header authorization: Bearer TOKEN");
  openai::SetApiCode(&status, "invalid_api_key");
  return status;
}

absl::Status OpenAiDoor::CheckModel(const std::string& name) const {
  if (name == model_->name) return absl::OkStatus();
  absl::Status status = absl::NotFoundError(
      absl::StrCat("the model \"", Escape(name, 128), "\" is not here; \"", model_->name, "\" is"));
  openai::SetApiCode(&status, "model_not_found");
  return status;
}

void OpenAiDoor::HandleKnown(const std::shared_ptr<HttpExchange>& exchange) const {
  const HttpRequest& request = exchange->request();
  const std::optional<std::string> path = DecodedPath(request.path);
  if (!path.has_value()) return exchange->Respond(openai::ApiErrorResponse(NoEscape(request)));
  const bool is_get = request.method == "GET", is_post = request.method == "POST";
  if (is_post && path == "/v1/chat/completions") return Complete(openai::ApiKind::kChat, exchange);
  if (is_post && path == "/v1/completions") return Complete(openai::ApiKind::kText, exchange);
  const ServedModel& model = *model_;
  if (is_get && path == kModelsPath) {
    return exchange->Respond(
        {.body = openai::ModelListReply(model.name, model.created, model.context_tokens_max)});
  }
  if (is_get && absl::StartsWith(*path, absl::StrCat(AbslView(kModelsPath), "/"))) {
    const absl::Status here = CheckModel(path->substr(kModelsPath.size() + 1));
    return exchange->Respond(here.ok() ? HttpResponse{.body = openai::ModelReply(model.name, model.created,
                                                                                 model.context_tokens_max)}
                                       : openai::ApiErrorResponse(here));
  }
  if (is_get && path == "/metrics") {
    return exchange->Respond(
        {.content_type = "text/plain; version=0.0.4", .body = Metrics(service_.load()->engine().status())});
  }
  exchange->Respond(openai::ApiErrorResponse(NoSuchPath(request)));
}

void OpenAiDoor::Complete(openai::ApiKind kind, const std::shared_ptr<HttpExchange>& exchange) const {
  const absl::Status started = Start(kind, exchange);
  if (!started.ok()) exchange->Respond(openai::ApiErrorResponse(started));
}

absl::Status OpenAiDoor::Start(openai::ApiKind kind, const std::shared_ptr<HttpExchange>& exchange) const {
  CompletionService* const service = service_;
  ASSIGN_OR_RETURN(const openai::CompletionRequest request,
                   openai::ParseCompletionRequest(kind, exchange->request().body));
  RETURN_IF_ERROR(CheckModel(request.model));
  const std::string today = absl::FormatTime("%d %b %Y", absl::Now(), absl::LocalTimeZone());
  ASSIGN_OR_RETURN(const CompletionJob job, MakeCompletionJob(*model_, request, today));
  const std::string fingerprint = service->engine().status().weights_sha256.substr(0, kFingerprintDigits);
  const auto writer = std::make_shared<CompletionWriter>(model_, request, job, fingerprint, exchange);
  ASSIGN_OR_RETURN(const int64_t id, service->Start(job, EventsTo(writer)));
  exchange->OnAbandoned([service, id] { service->Cancel(id); });
  return absl::OkStatus();
}

HttpResponse RefuseUnseen(int status, const std::string& reason) {
  HttpResponse response = openai::ApiErrorResponse(absl::InvalidArgumentError(reason));
  response.status = status;
  return response;
}

}  // namespace warpsmith::serving
