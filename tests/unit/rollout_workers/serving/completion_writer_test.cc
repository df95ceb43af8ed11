#include "rollout_workers/serving/completion_writer.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/support/recorded_exchange.h"
#include "tests/support/served_model_fixture.h"

namespace warpsmith::serving {
namespace {

using Json = nlohmann::json;

// A request and the tokens of "relu(x) + 1" for each choice of two.
struct Scene {
  explicit Scene(const std::string& fields)
      : request(openai::ParseCompletionRequest(openai::ApiKind::kText,
                                               R"({"model": "tiny", "prompt": "hi", )" + fields + "}")
                    .value()),
        job(MakeCompletionJob(model, request, "").value()),
        exchange(std::make_shared<RecordedExchange>(HttpRequest())),
        writer(&model, request, job, "f", exchange) {}

  // Writes `text` and the end of turn as a choice's tokens.
  void Write(int choice, const std::string& text) {
    std::vector<int32_t> ids = model.tokenizer.Encode(text, SpecialTokens::kParse).value();
    ids.push_back(model.stop_token_ids[0]);
    for (const int32_t id : ids) {
      if (!writer.Token(choice, {id, -1, {}})) return;
    }
    writer.End(choice, FinishReason::kStop);
  }

  const ServedModel model = TinyServedModel();
  const openai::CompletionRequest request;
  const CompletionJob job;
  const std::shared_ptr<RecordedExchange> exchange;
  CompletionWriter writer;
};

std::vector<Json> EventsOf(const std::string& body) {
  std::vector<Json> events;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\n\n", at);
    REQUIRE(end != std::string::npos);
    const std::string data = body.substr(at + 6, end - at - 6);
    events.push_back(data == "[DONE]" ? Json(data) : Json::parse(data));
    at = end + 2;
  }
  return events;
}

}  // namespace

TEST_CASE("a whole answer comes when its last choice has ended, in the order of the choices") {
  Scene scene(R"("n": 2)");
  scene.Write(1, "second");
  CHECK(scene.exchange->num_answers() == 0);
  scene.Write(0, "first");
  const Json reply = Json::parse(scene.exchange->Await()->body);
  CHECK(reply["choices"][0]["text"] == "first");
  CHECK(reply["choices"][1]["text"] == "second");
  CHECK(reply["choices"][0]["finish_reason"] == "stop");
  CHECK(reply["usage"]["prompt_tokens"] == scene.job.prompts[0].size());
}

TEST_CASE("the pieces of a stream make the whole answer") {
  const std::string text = "int x = 1;\n  return relu(x);";
  Scene whole(R"("logprobs": 0)");
  whole.Write(0, text);
  const Json reply = Json::parse(whole.exchange->Await()->body);
  Scene stream(R"("logprobs": 0, "stream": true, "stream_options": {"include_usage": true})");
  stream.Write(0, text);
  const HttpResponse response = *stream.exchange->Await();
  CHECK(response.content_type == "text/event-stream");
  const std::vector<Json> events = EventsOf(response.body);
  std::string streamed;
  Json tokens = Json::array();
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const Json& choice = events[i]["choices"][0];
    streamed += choice["text"].get<std::string>();
    if (choice["logprobs"].is_null()) continue;
    for (const Json& token : choice["logprobs"]["tokens"]) tokens.push_back(token);
  }
  CHECK(streamed == text);
  CHECK(streamed == reply["choices"][0]["text"]);
  CHECK(tokens == reply["choices"][0]["logprobs"]["tokens"]);
  CHECK(events[events.size() - 3]["choices"][0]["finish_reason"] == "stop");
  CHECK(events[events.size() - 2]["usage"] == reply["usage"]);
  CHECK(events.back() == "[DONE]");
}

TEST_CASE("a stop string ends a choice by itself, whole and as a stream") {
  for (const char* const stream : {"false", "true"}) {
    Scene scene(absl::StrCat(R"("stop": ["; re"], "stream": )", stream));
    scene.Write(0, "int x; return relu(x);");
    const HttpResponse response = *scene.exchange->Await();
    CHECK_THAT(response.body, Catch::Contains("\"finish_reason\":\"stop\""));
    CHECK_THAT(response.body, !Catch::Contains("relu"));
  }
}

TEST_CASE("a failure is an error before the first piece, and an event behind it") {
  Scene early(R"("stream": true)");
  early.writer.Fail(absl::UnavailableError("stopped"));
  CHECK(early.exchange->Await()->status == 503);
  Scene late(R"("stream": true)");
  late.writer.Token(0, {late.model.tokenizer.Encode("relu", SpecialTokens::kParse).value()[0], -1, {}});
  late.writer.Fail(absl::UnavailableError("stopped"));
  const HttpResponse response = *late.exchange->Await();
  CHECK(response.status == 200);
  CHECK(EventsOf(response.body).back()["error"]["message"] == "stopped");
}

}  // namespace warpsmith::serving
