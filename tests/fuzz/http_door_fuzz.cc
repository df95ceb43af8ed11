// Whatever is asked of the JSON door gets exactly one answer, in JSON and with a status that
// docs/openapi.yaml knows. The input is "METHOD /path?query", a line break and the body. A valid request goes
// through the whole reception and meets a full queue; nothing is compiled or judged.
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/rpc/http_target.h"
#include "reward_service/server/http_door.h"
#include "tests/fuzz/fuzz_input.h"

namespace warpsmith {
namespace {

class RecordedExchange final : public HttpExchange {
 public:
  explicit RecordedExchange(HttpRequest request) : request_(std::move(request)) {}

  const HttpRequest& request() const override { return request_; }
  void Respond(HttpResponse response) override { responses_.push_back(std::move(response)); }
  void BeginStream(HttpResponse /*head*/) override {}
  void SendPiece(std::string /*piece*/) override {}
  void EndStream() override {}
  void OnAbandoned(std::function<void()> /*abandoned*/) override {}

  const std::vector<HttpResponse>& responses() const { return responses_; }

 private:
  const HttpRequest request_;
  std::vector<HttpResponse> responses_;
};

// The door of a service whose queue is full.
struct FullService {
  CompileStage compile{"no compiler", 1 << 16, nullptr, nullptr};
  Ledger ledger{int64_t{1} << 20};
  Grader grader{GraderOptions{.queue_capacity = 0,
                              .observer = [this](const std::shared_ptr<const PreparedRequest>& prepared,
                                                 const v1::Grade& grade) { ledger.Record(prepared, grade); }},
                &compile,
                {}};
  Reception reception{
      {.abilities = {.devices = {{v1::DEVICE_CPU, "machine"}}}}, *Tenants::Load({}, 8), &grader, &ledger};
  HttpDoor door{&reception, {{"/", "<p>page</p>"}}};
};

HttpRequest ReadRequest(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::string_view target = line.substr(std::min(line.find(' '), line.size() - 1) + 1);
  HttpRequest request;
  request.method = std::string(line.substr(0, line.find(' ')));
  request.path = std::string(PathOf(target));
  request.query = QueryOf(target);
  request.body = std::string(text.substr(std::min(line.size() + 1, text.size())));
  return request;
}

}  // namespace
}  // namespace warpsmith

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  static auto* const service = [] {
    warpsmith::SetUpLogging("http_door_fuzz", "error");  // a line a grade would fill the disk
    return new warpsmith::FullService;
  }();
  static const std::set<int> kStatuses = {200, 400, 404, 409, 429};
  const auto exchange = std::make_shared<warpsmith::RecordedExchange>(
      warpsmith::ReadRequest(warpsmith::AsText(bytes, num_bytes)));
  service->door.Handle(exchange);
  WS_CHECK(exchange->responses().size() == 1) << exchange->responses().size() << " answers";
  const warpsmith::HttpResponse& response = exchange->responses().front();
  WS_CHECK(kStatuses.contains(response.status)) << response.status;
  if (response.content_type == "application/json") {
    WS_CHECK(nlohmann::json::accept(response.body)) << response.body;
  }
  return 0;
}
