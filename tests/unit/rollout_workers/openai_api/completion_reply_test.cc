#include "rollout_workers/openai_api/completion_reply.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

namespace warpsmith::openai {
namespace {

using Json = nlohmann::json;

ReplyHead Head(ApiKind kind, bool log_probs = false, bool include_usage = false) {
  return {.kind = kind,
          .id = "id-1",
          .created = 7,
          .model = "m",
          .fingerprint = "f",
          .log_probs = log_probs,
          .include_usage = include_usage};
}

ReplyChoice Choice() { return {{"a\"b", {{"a", -0.5F, 0, {}}, {"\xf0\x9f", -1, 1, {}}}}, "stop"}; }

Json DataOf(const std::string& event) {
  REQUIRE(event.substr(0, 6) == "data: ");
  REQUIRE(event.substr(event.size() - 2) == "\n\n");
  return Json::parse(event.substr(6));
}

}  // namespace

TEST_CASE("a chat's whole reply has the form that its clients know") {
  const Json reply = Json::parse(WholeReply(Head(ApiKind::kChat), {Choice()}, {3, 2}));
  CHECK(reply["object"] == "chat.completion");
  CHECK(reply["id"] == "id-1");
  CHECK(reply["created"] == 7);
  CHECK(reply["usage"] == Json{{"prompt_tokens", 3}, {"completion_tokens", 2}, {"total_tokens", 5}});
  const Json& choice = reply["choices"][0];
  CHECK(choice["message"] == Json{{"role", "assistant"}, {"content", "a\"b"}, {"refusal", nullptr}});
  CHECK(choice["finish_reason"] == "stop");
  CHECK(choice["logprobs"].is_null());
}

TEST_CASE("log-probs are shown in the form of each endpoint") {
  const Json chat = Json::parse(WholeReply(Head(ApiKind::kChat, true), {Choice()}, {}));
  const Json& content = chat["choices"][0]["logprobs"]["content"];
  REQUIRE(content.size() == 2);
  CHECK(content[0] ==
        Json{{"token", "a"}, {"logprob", -0.5}, {"bytes", {97}}, {"top_logprobs", Json::array()}});
  CHECK(content[1]["token"] == "\uFFFD");
  CHECK(content[1]["bytes"] == Json{0xf0, 0x9f});
  const Json text = Json::parse(WholeReply(Head(ApiKind::kText, true), {Choice()}, {}));
  CHECK(text["object"] == "text_completion");
  CHECK(text["choices"][0]["text"] == "a\"b");
  CHECK(text["choices"][0]["logprobs"] == Json{{"tokens", {"a", "\uFFFD"}},
                                               {"token_logprobs", {-0.5, -1.0}},
                                               {"top_logprobs", nullptr},
                                               {"text_offset", {0, 1}}});
}

TEST_CASE("alternatives are shown in the form of each endpoint, and have finite log-probs") {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const AnswerToken token{"a", -2, 0, {{"b", -0.25F}, {"\xf0", -1}, {"\xf1", kNever}}};
  ReplyHead head = Head(ApiKind::kChat, true);
  head.num_top_tokens = 3;
  const Json chat = Json::parse(WholeReply(head, {{{"a", {token}}, "stop"}}, {}));
  const Json& top = chat["choices"][0]["logprobs"]["content"][0]["top_logprobs"];
  REQUIRE(top.size() == 3);
  CHECK(top[0] == Json{{"token", "b"}, {"logprob", -0.25}, {"bytes", {98}}});
  CHECK(top[1]["token"] == "\uFFFD");
  CHECK(top[2] == Json{{"token", "\uFFFD"}, {"logprob", -9999.0}, {"bytes", {0xf1}}});
  head.kind = ApiKind::kText;
  const Json text = Json::parse(WholeReply(head, {{{"a", {token}}, "stop"}}, {}));
  // By text: the more probable of two that look alike, and the token itself.
  CHECK(text["choices"][0]["logprobs"]["top_logprobs"] ==
        Json::array({Json{{"b", -0.25}, {"\uFFFD", -1.0}, {"a", -2.0}}}));
}

TEST_CASE("events carry pieces; usage comes last and only where it was asked for") {
  const ReplyHead head = Head(ApiKind::kChat, false, true);
  const Json begin = DataOf(BeginEvent(head, 2));
  CHECK(begin["object"] == "chat.completion.chunk");
  CHECK(begin["choices"][0]["delta"] == Json{{"role", "assistant"}, {"content", ""}});
  CHECK(begin["choices"][0]["index"] == 2);
  CHECK(begin["usage"].is_null());
  const Json piece = DataOf(PieceEvent(head, 2, {{"x", {}}, ""}));
  CHECK(piece["choices"][0]["delta"] == Json{{"content", "x"}});
  CHECK(piece["choices"][0]["finish_reason"].is_null());
  const Json end = DataOf(PieceEvent(head, 2, {{}, "length"}));
  CHECK(end["choices"][0]["delta"] == Json::object());
  CHECK(end["choices"][0]["finish_reason"] == "length");
  const Json usage = DataOf(UsageEvent(head, {1, 1}));
  CHECK(usage["choices"] == Json::array());
  CHECK(usage["usage"]["total_tokens"] == 2);
  CHECK(UsageEvent(Head(ApiKind::kChat), {1, 1}).empty());
  CHECK_FALSE(DataOf(PieceEvent(Head(ApiKind::kChat), 0, {})).contains("usage"));
  CHECK(BeginEvent(Head(ApiKind::kText), 0).empty());
  CHECK(DataOf(PieceEvent(Head(ApiKind::kText), 0, {{"x", {}}, ""}))["choices"][0]["text"] == "x");
  CHECK(DoneEvent() == "data: [DONE]\n\n");
}

TEST_CASE("the model is listed with its context") {
  const Json list = Json::parse(ModelListReply("m", 7, 4096));
  CHECK(list["object"] == "list");
  CHECK(list["data"][0] == Json::parse(ModelReply("m", 7, 4096)));
  CHECK(list["data"][0]["id"] == "m");
  CHECK(list["data"][0]["max_model_len"] == 4096);
}

}  // namespace warpsmith::openai
