#include "rollout_workers/openai_api/completion_request.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

namespace warpsmith::openai {
namespace {

using Json = nlohmann::json;

Json Chat() { return Json::parse(R"({"model": "m", "messages": [{"role": "user", "content": "hi"}]})"); }
Json Text() { return Json::parse(R"({"model": "m", "prompt": "hi"})"); }

absl::StatusOr<CompletionRequest> Parse(const Json& json) {
  return ParseCompletionRequest(json.contains("prompt") ? ApiKind::kText : ApiKind::kChat, json.dump());
}

Json With(Json json, const std::string& name, const std::string& value) {
  json[name] = Json::parse(value);
  return json;
}

// The message for `json` with this field; empty where it is taken.
std::string Refusal(const Json& json, const std::string& name, const std::string& value) {
  return std::string(Parse(With(json, name, value)).status().message());
}

}  // namespace

TEST_CASE("what is not asked is left to the checkpoint and the engine") {
  const CompletionRequest request = Parse(Chat()).value();
  CHECK(request.model == "m");
  REQUIRE(request.messages.size() == 1);
  CHECK(request.messages[0].content == "hi");
  CHECK(request.chat.enable_thinking);
  CHECK(request.num_choices == 1);
  CHECK_FALSE(request.temperature.has_value());
  CHECK_FALSE(request.tokens_max.has_value());
  CHECK_FALSE(request.seed.has_value());
  CHECK_FALSE(request.stream);
}

TEST_CASE("all that can be asked of a chat is read") {
  Json json = Chat();
  json.merge_patch(Json::parse(R"({
    "n": 3, "seed": -5, "temperature": 0, "top_p": 0.5, "top_k": -1, "min_p": 0.1, "max_completion_tokens": 7,
    "stop": ["a", "b"], "stream": true, "stream_options": {"include_usage": true}, "logprobs": true,
    "top_logprobs": 0, "chat_template_kwargs": {"enable_thinking": false, "date_string": "1 Jan 2026"},
    "user": "u", "metadata": {"k": "v"}, "tools": [], "tool_choice": "none",
    "response_format": {"type": "text"}, "presence_penalty": 0, "logit_bias": {}, "unheard_of": null})"));
  const CompletionRequest request = Parse(json).value();
  CHECK(request.num_choices == 3);
  CHECK(request.seed == static_cast<uint64_t>(-5));
  CHECK(request.temperature == 0);
  CHECK(request.top_p == 0.5);
  CHECK(request.top_k == 0);
  CHECK(request.min_p == 0.1);
  CHECK(request.tokens_max == 7);
  CHECK(request.stops == std::vector<std::string>{"a", "b"});
  CHECK(request.stream);
  CHECK(request.include_usage);
  CHECK(request.log_probs);
  CHECK_FALSE(request.chat.enable_thinking);
  CHECK(request.chat.date == "1 Jan 2026");
}

TEST_CASE("messages may come in parts, with reasoning, and as clients echo them") {
  const CompletionRequest request = Parse(Json::parse(R"({"model": "m", "messages": [
    {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "user", "content": "q", "name": "me"},
    {"role": "assistant", "content": "r", "reasoning_content": "why", "refusal": null, "tool_calls": null,
     "audio": null, "annotations": []}]})"))
                                        .value();
  REQUIRE(request.messages.size() == 3);
  CHECK(request.messages[0].content == "a\nb");
  CHECK(request.messages[2].reasoning == "why");
}

TEST_CASE("parts are joined by line breaks, also those that are empty") {
  const auto joined = [](const std::vector<std::string>& texts) {
    Json parts = Json::array();
    for (const std::string& text : texts) parts.push_back({{"type", "text"}, {"text", text}});
    return Parse({{"model", "m"}, {"messages", {{{"role", "user"}, {"content", parts}}}}})
        ->messages[0]
        .content;
  };
  CHECK(joined({"", "", "b"}) == "\n\nb");
  CHECK(joined({"a", "", ""}) == "a\n\n");
  CHECK(joined({""}).empty());
}

TEST_CASE("bytes behind the value are refused, also behind a NUL byte") {
  const std::string value = R"({"model": "m", "prompt": "a"})";
  CHECK(ParseCompletionRequest(ApiKind::kText, value + " \n").ok());
  for (const std::string& behind :
       {std::string("x"), std::string("{}"), std::string("\0", 1), std::string("\0x", 2)}) {
    CHECK(absl::IsInvalidArgument(ParseCompletionRequest(ApiKind::kText, value + behind).status()));
  }
}

TEST_CASE("prompts are texts or ids, one or several") {
  const auto prompts = [](const std::string& value) {
    return Parse(With(Text(), "prompt", value)).value().prompts;
  };
  CHECK(prompts(R"("a")") == std::vector<TextPrompt>{"a"});
  CHECK(prompts(R"(["a", "b"])") == std::vector<TextPrompt>{"a", "b"});
  CHECK(prompts("[1, 2]") == std::vector<TextPrompt>{std::vector<int32_t>{1, 2}});
  CHECK(prompts("[[1], [2, 3]]").size() == 2);
  for (const char* const bad : {"[]", "\"\"", "[[]]", "[\"\"]", "[-1]", "[1, \"a\"]", "[2147483648]", "3",
                                "{}", "[[[1]]]", "[1.5]"}) {
    CHECK_THAT(Refusal(Text(), "prompt", bad), Catch::StartsWith("prompt must be"));
  }
}

TEST_CASE("what is missing is named") {
  CHECK_THAT(std::string(Parse(Json::parse("{}")).status().message()), Catch::StartsWith("model is missing"));
  CHECK_THAT(std::string(Parse(Json::parse(R"({"model": "m"})")).status().message()),
             Catch::StartsWith("messages must be"));
  CHECK(absl::IsInvalidArgument(ParseCompletionRequest(ApiKind::kChat, "no JSON").status()));
  CHECK(absl::IsInvalidArgument(ParseCompletionRequest(ApiKind::kChat, "[]").status()));
  CHECK(absl::IsInvalidArgument(ParseCompletionRequest(ApiKind::kChat, std::string(100'000, '[')).status()));
}

TEST_CASE("values out of bounds are refused by field") {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"n", "0"},
           {"n", "129"},
           {"temperature", "-0.1"},
           {"temperature", "\"hot\""},
           {"top_p", "0"},
           {"top_p", "1.1"},
           {"top_k", "-2"},
           {"min_p", "1.5"},
           {"max_tokens", "0"},
           {"seed", "1.5"},
           {"stop", "\"\""},
           {"stop", "[1]"},
           {"stop", "[\"a\", \"\"]"},
           {"stream", "1"},
           {"best_of", "2"},
           {"stream_options", "{}"},
           {"chat_template_kwargs", "{\"thinking\": true}"},
           {"messages", "[{\"role\": \"user\"}]"},
           {"messages", "[{\"role\": \"tool\", \"content\": \"4\"}]"},
           {"messages", "[\"hi\"]"},
           {"messages", "[]"},
           {"max_completion_tokens", "-1"}}) {
    INFO(name << " = " << value);
    CHECK_THAT(Refusal(Chat(), name, value), Catch::StartsWith(name));
  }
  Json both = With(Chat(), "max_tokens", "3");
  CHECK_THAT(Refusal(both, "max_completion_tokens", "4"), Catch::Contains("differ"));
  CHECK(Refusal(both, "max_completion_tokens", "3").empty());
}

TEST_CASE("fields that would change the answer in ways we lack are refused by name") {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"tools", "[{\"type\": \"function\"}]"},
                                                        {"response_format", "{\"type\": \"json_object\"}"},
                                                        {"presence_penalty", "0.1"},
                                                        {"frequency_penalty", "1"},
                                                        {"repetition_penalty", "1.1"},
                                                        {"logit_bias", "{\"5\": 1}"},
                                                        {"top_logprobs", "5"},  // without logprobs
                                                        {"ignore_eos", "true"},
                                                        {"guided_json", "{}"},
                                                        {"reasoning_effort", "\"high\""},
                                                        {"messages_", "1"},
                                                        {"continue_final_message", "true"}}) {
    INFO(name);
    CHECK_THAT(Refusal(Chat(), name, value), Catch::StartsWith(name));
  }
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"echo", "true"}, {"suffix", "\"x\""}, {"logprobs", "21"}, {"max_completion_tokens", "3"}}) {
    INFO(name);
    CHECK_THAT(Refusal(Text(), name, value), Catch::StartsWith(name));
  }
  CHECK(Refusal(Text(), "logprobs", "0").empty());
  CHECK_THAT(Refusal(With(Chat(), "logprobs", "true"), "top_logprobs", "21"),
             Catch::StartsWith("top_logprobs"));
  CHECK(Refusal(Text(), "best_of", "1").empty());
}

TEST_CASE("log-probs of other tokens are asked for by each endpoint's fields") {
  const auto chat = Parse(With(With(Chat(), "logprobs", "true"), "top_logprobs", "20"));
  REQUIRE(chat.ok());
  CHECK(chat->log_probs);
  CHECK(chat->num_top_tokens == 20);
  const auto text = Parse(With(Text(), "logprobs", "5"));
  REQUIRE(text.ok());
  CHECK(text->log_probs);
  CHECK(text->num_top_tokens == 5);
  const auto none = Parse(Text());
  REQUIRE(none.ok());
  CHECK_FALSE(none->log_probs);
  CHECK(none->num_top_tokens == 0);
}

}  // namespace warpsmith::openai
