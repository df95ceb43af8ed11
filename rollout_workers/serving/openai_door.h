// The HTTP handler of a served model: OpenAI's API.
#ifndef WARPSMITH_ROLLOUT_WORKERS_SERVING_OPENAI_DOOR_H_
#define WARPSMITH_ROLLOUT_WORKERS_SERVING_OPENAI_DOOR_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/rpc/http_server.h"
#include "rollout_workers/openai_api/completion_request.h"
#include "rollout_workers/serving/completion_service.h"
#include "rollout_workers/serving/served_model.h"

namespace warpsmith::serving {

// Handles POST /v1/chat/completions, POST /v1/completions, GET /v1/models, GET /v1/models/NAME, GET /metrics
// and GET /health, without waiting for the engine. All but /health want the token, where there is one.
// Requests that come before Open are told to come again.
class OpenAiDoor {
 public:
  // `model` must outlive the server that this is the handler of. Empty `token`: every client may ask.
  OpenAiDoor(const ServedModel* model, const std::string& token);

  // The engine is ready. `service` must outlive the server.
  void Open(CompletionService* service) { service_ = service; }

  void Handle(const std::shared_ptr<HttpExchange>& exchange) const;

 private:
  absl::Status CheckToken(const HttpRequest& request) const;
  absl::Status CheckModel(const std::string& name) const;
  void HandleKnown(const std::shared_ptr<HttpExchange>& exchange) const;
  void Complete(openai::ApiKind kind, const std::shared_ptr<HttpExchange>& exchange) const;
  absl::Status Start(openai::ApiKind kind, const std::shared_ptr<HttpExchange>& exchange) const;

  const ServedModel* const model_;
  const std::string token_sha256_;  // empty: every client may ask
  std::atomic<CompletionService*> service_ = nullptr;
};

// What a server with this handler answers to requests that never reach it.
HttpResponse RefuseUnseen(int status, const std::string& reason);

}  // namespace warpsmith::serving

#endif  // WARPSMITH_ROLLOUT_WORKERS_SERVING_OPENAI_DOOR_H_
