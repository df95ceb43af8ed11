#include "rollout_workers/serving/openai_door.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "rollout_workers/weights.h"
#include "tests/support/recorded_exchange.h"
#include "tests/support/served_model_fixture.h"

namespace warpsmith::serving {
namespace {

using Json = nlohmann::json;

constexpr char kToken[] = "a-token-of-sixteen-bytes";

// A door, open unless a test says otherwise.
struct Scene {
  explicit Scene(const std::string& token = "", bool is_open = true)
      : service(ServedConfig(), options, MakeBatch(ServedConfig(), options).value()), door(&model, token) {
    REQUIRE(service.engine().SwapWeights(RandomWeights(ServedConfig(), 1), absl::InfiniteFuture()).ok());
    if (is_open) door.Open(&service);
  }

  std::shared_ptr<RecordedExchange> Send(const std::string& method, const std::string& path,
                                         const std::string& body = "", const std::string& token = "") {
    HttpRequest request{.method = method, .path = path, .body = body};
    if (!token.empty()) request.headers["authorization"] = "bearer " + token;
    const auto exchange = std::make_shared<RecordedExchange>(request);
    door.Handle(exchange);
    return exchange;
  }
  HttpResponse Ask(const std::string& method, const std::string& path, const std::string& body = "",
                   const std::string& token = "") {
    return Send(method, path, body, token)->Await().value_or(HttpResponse{.status = 0});
  }

  const ServedModel model = TinyServedModel();
  const EngineOptions options{.num_slots = 4,
                              .context_tokens_max = model.context_tokens_max,
                              .samples_max = 64,
                              .num_token_ids = model.tokenizer.vocab_size(),
                              .stop_token_ids = model.stop_token_ids};
  CompletionService service;
  OpenAiDoor door;
};

std::string TextBody(const std::string& fields) {
  return absl::StrCat(R"({"model": "tiny", "prompt": "relu", "seed": 1, )", fields, "}");
}

}  // namespace

TEST_CASE("both endpoints answer, and a seed repeats") {
  Scene scene;
  const std::string chat =
      R"({"model": "tiny", "messages": [{"role": "user", "content": "relu"}], "max_tokens": 9, "seed": 5})";
  const HttpResponse first = scene.Ask("POST", "/v1/chat/completions", chat);
  REQUIRE(first.status == 200);
  const Json reply = Json::parse(first.body);
  CHECK(reply["usage"]["completion_tokens"] == 9);
  CHECK(reply["choices"][0]["finish_reason"] == "length");
  CHECK(reply["system_fingerprint"].get<std::string>().size() == 16);
  const Json again = Json::parse(scene.Ask("POST", "/v1/chat/completions", chat).body);
  CHECK(again["choices"] == reply["choices"]);
  CHECK(again["id"] != reply["id"]);
  CHECK(Json::parse(scene.Ask("POST", "/v1/completions", TextBody(R"("n": 3)")).body)["choices"].size() == 3);
}

TEST_CASE("models are listed and found by name, whatever it has and however a client encodes it") {
  Scene scene;
  CHECK(Json::parse(scene.Ask("GET", "/v1/models").body)["data"][0]["id"] == "tiny");
  CHECK(Json::parse(scene.Ask("GET", "/v1/models/tiny").body)["id"] == "tiny");
  CHECK(scene.Ask("GET", "/v1/models/other").status == 404);
  CHECK(scene.Ask("GET", "/v1/model%73").status == 200);
  const HttpResponse refused = scene.Ask("GET", "/v1/models/tiny%2");
  CHECK(refused.status == 400);
  CHECK_THAT(refused.body, Catch::Contains("/v1/models/tiny%2 has a % without two hexadecimal digits"));
  ServedModel owned = TinyServedModel();
  OpenAiDoor door(&owned, "");
  door.Open(&scene.service);
  for (const auto& [name, path] :
       {std::pair("owner/tiny", "owner/tiny"), std::pair("owner/tiny", "owner%2Ftiny"),
        std::pair("owner/tiny", "owner%2ftiny"), std::pair("a b+c%", "a%20b+c%25"),
        std::pair("mod\u00E8le", "mod%C3%a8le"), std::pair("a?b#c", "a%3Fb%23c")}) {
    owned.name = name;
    const auto exchange = std::make_shared<RecordedExchange>(
        HttpRequest{.method = "GET", .path = absl::StrCat("/v1/models/", path)});
    door.Handle(exchange);
    CHECK(exchange->Await()->status == 200);
  }
}

TEST_CASE("faults are told in the words of the API") {
  Scene scene;
  const auto error = [&](const std::string& body) {
    const HttpResponse response = scene.Ask("POST", "/v1/completions", body);
    Json error = Json::parse(response.body)["error"];
    error["status"] = response.status;
    return error;
  };
  CHECK(error("{")["status"] == 400);
  CHECK(error(TextBody(R"("n": 0)"))["param"] == "n");
  const Json unknown = error(R"({"model": "gpt-4", "prompt": "x"})");
  CHECK(unknown["status"] == 404);
  CHECK(unknown["code"] == "model_not_found");
  CHECK(error(TextBody(R"("max_tokens": 512)"))["code"] == "context_length_exceeded");
  CHECK(scene.Ask("GET", "/v1/completions").status == 404);
  CHECK(scene.Ask("POST", "/v1/embeddings", "{}").status == 404);
  CHECK(RefuseUnseen(413, "too long").status == 413);
}

TEST_CASE("where there is a token, requests must carry it; health alone is for all") {
  Scene scene(kToken);
  CHECK(scene.Ask("GET", "/v1/models").status == 401);
  CHECK(scene.Ask("GET", "/v1/models", "", "another-token-of-16-bytes").status == 401);
  CHECK(scene.Ask("GET", "/v1/models", "", kToken).status == 200);
  CHECK(scene.Ask("GET", "/metrics").status == 401);
  CHECK(scene.Ask("GET", "/health").status == 200);
  CHECK(Json::parse(scene.Ask("GET", "/v1/models").body)["error"]["code"] == "invalid_api_key");
}

TEST_CASE("before the weights are there requests are told to come again") {
  Scene scene("", /*is_open=*/false);
  for (const char* const path : {"/health", "/v1/models", "/metrics"}) {
    const HttpResponse response = scene.Ask("GET", path);
    CHECK(response.status == 503);
    REQUIRE(response.headers.size() == 1);
    CHECK(response.headers[0].first == "Retry-After");
  }
}

TEST_CASE("a client that hangs up frees the engine") {
  Scene scene;
  const auto exchange = scene.Send("POST", "/v1/completions", TextBody(R"("max_tokens": 500, "n": 64)"));
  exchange->Abandon();
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  const auto is_idle = [&] {
    const EngineStatus status = scene.service.engine().status();
    return status.num_active_samples + status.num_waiting_samples == 0;
  };
  while (!is_idle() && absl::Now() < deadline) std::this_thread::yield();
  CHECK(is_idle());
  CHECK(exchange->num_answers() == 0);
}

TEST_CASE("a full queue is back-pressure") {
  absl::Notification done;
  Scene scene;
  // More tokens than fit the queue of events, which nobody takes: the engine is busy until the notification.
  const absl::StatusOr<int64_t> id = scene.service.Start(
      {.prompts = {{5}}, .num_choices = 64, .sampling = {.answer_tokens_max = 500}, .reports_tokens = true},
      {.on_token =
           [&](int, const ChosenToken&) {
             done.WaitForNotification();
             return true;
           },
       .on_end = [](int, FinishReason) {},
       .on_failure = [](const absl::Status&) {}});
  REQUIRE(id.ok());
  // As many as fit: none may be left of the others, some of which a stop token has ended.
  const HttpResponse refused = scene.Ask("POST", "/v1/completions", TextBody(R"("max_tokens": 5, "n": 64)"));
  CHECK(refused.status == 429);
  REQUIRE(refused.headers.size() == 1);
  CHECK(refused.headers[0] == std::pair<std::string, std::string>("Retry-After", "1"));
  scene.service.Cancel(*id);
  done.Notify();
}

TEST_CASE("metrics tell what the engine does") {
  Scene scene;
  CHECK(scene.Ask("POST", "/v1/completions", TextBody(R"("max_tokens": 7)")).status == 200);
  CHECK_THAT(scene.Ask("GET", "/metrics").body, Catch::Contains("warpsmith_serving_drawn_tokens_total 7\n"));
}

}  // namespace warpsmith::serving
