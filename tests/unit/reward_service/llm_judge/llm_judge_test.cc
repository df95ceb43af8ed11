#include "reward_service/llm_judge/llm_judge.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

std::string Scores(const std::string& first, const std::string& reason = "\"fine\"") {
  std::string text = "{\"anti_hacking\": {\"score\": " + first + ", \"reason\": " + reason + "}";
  for (const char* name : {"engineering", "operator_coverage", "skill_compliance"}) {
    text += std::string(", \"") + name + "\": {\"score\": 4, \"reason\": \"ok\"}";
  }
  return text + "}";
}

std::string Completion(const std::string& content) {
  return Json{{"choices", {{{"message", {{"role", "assistant"}, {"content", content}}}}}}}.dump();
}

absl::StatusOr<LlmOpinion> Parse(const std::string& content) { return ParseLlmReply(Completion(content)); }

v1::Rubric Tables(int score) {
  v1::Rubric rubric;
  for (v1::RubricScore* row : {rubric.mutable_anti_hacking(), rubric.mutable_engineering(),
                               rubric.mutable_operator_coverage(), rubric.mutable_skill_compliance()}) {
    row->set_score(score);
    row->set_reason("measured");
  }
  rubric.set_total(4 * score);
  rubric.set_source("tables-v1");
  return rubric;
}

LlmOpinion OpinionOf(int score) {
  LlmOpinion opinion;
  for (LlmScore& row : opinion.scores) row = {score, "because"};
  return opinion;
}

TEST_CASE("a reply of four scores with reasons is an opinion") {
  const absl::StatusOr<LlmOpinion> opinion = Parse(Scores("2"));
  REQUIRE(opinion.ok());
  CHECK(opinion->scores[0].score == 2);
  CHECK(opinion->scores[0].reason == "fine");
  CHECK(opinion->scores[3].score == 4);
  CHECK(Parse(" \n" + Scores("5") + "\n").ok());
}

TEST_CASE("nothing but the object itself is accepted") {
  const std::string good = Scores("3");
  for (const std::string& content :
       {std::string(), std::string("I give 5 to all."), "```json\n" + good + "\n```", "Sure! " + good,
        good + good, good + " ok", std::string("[") + good + "]", std::string("null"),
        good.substr(0, good.size() - 1), "<think>hm</think>" + good, std::string("{}"),
        std::string(100000, '['), "\xef\xbb\xbfx" + good}) {
    INFO(content.substr(0, 80));
    CHECK(absl::IsInvalidArgument(Parse(content).status()));
  }
}

TEST_CASE("a score is an integer from 1 to 5 and nothing that looks like one") {
  for (const char* score : {"0", "6", "-1", "5.0", "4.5", "\"5\"", "true", "null", "[5]", "5e0", "1e400",
                            "18446744073709551617", "18446744073709551621", "4294967298"}) {
    INFO(score);
    CHECK(absl::IsInvalidArgument(Parse(Scores(score)).status()));
  }
}

TEST_CASE("missing, additional, repeated and misnamed keys are refused") {
  Json reply = Json::parse(Scores("3"));
  Json missing = reply, more = reply, deep = reply, renamed = reply;
  missing.erase("engineering");
  more["total"] = 20;
  deep["engineering"]["major_hacking"] = false;
  renamed.erase("engineering");
  renamed["Engineering"] = reply["engineering"];
  for (const Json& wrong : {missing, more, deep, renamed}) CHECK_FALSE(Parse(wrong.dump()).ok());
  std::string twice = Scores("1");
  twice.insert(1, "\"anti_hacking\": {\"score\": 5, \"reason\": \"\"}, ");
  CHECK_FALSE(Parse(twice).ok());
  CHECK_FALSE(Parse(Scores("1, \"score\": 5")).ok());
  CHECK_FALSE(Parse(Scores("1", "7")).ok());
}

TEST_CASE("the envelope has to be a completed chat completion") {
  const auto refused = [](const std::string& body) {
    return absl::IsInvalidArgument(ParseLlmReply(body).status());
  };
  CHECK(refused(""));
  CHECK(refused("<html>"));
  CHECK(refused(Scores("3")));
  CHECK(refused(R"({"choices": []})"));
  CHECK(refused(R"({"choices": [{"message": {"content": null}}]})"));
  CHECK(refused(R"({"choices": [{"message": {"content": {"score": 5}}}]})"));
  CHECK(refused(R"({"choices": [1]})"));
  CHECK(refused(R"({"choices": {"message": {}}})"));
  Json cut = Json::parse(Completion(Scores("3")));
  cut["choices"][0]["finish_reason"] = "length";
  CHECK(refused(cut.dump()));
  cut["choices"][0]["finish_reason"] = "stop";
  CHECK(ParseLlmReply(cut.dump()).ok());
  cut["choices"].push_back(cut["choices"][0]);
  CHECK(refused(cut.dump()));
}

TEST_CASE("reasons are ASCII on one line and bounded, whatever they hold") {
  const absl::StatusOr<LlmOpinion> odd =
      Parse(Scores("3", R"("a\nb \u202e <b> \"q\" \u00e9 \u0000 \ud83d\ude00")"));
  REQUIRE(odd.ok());
  CHECK(odd->scores[0].reason == R"(a\nb \u202e <b> \"q\" \u00e9 \u0000 \ud83d\ude00)");
  CHECK_FALSE(Parse(Scores("3", R"("\ud800")")).ok());
  const absl::StatusOr<LlmOpinion> huge = Parse(Scores("3", "\"" + std::string(200000, 'x') + "\""));
  REQUIRE(huge.ok());
  CHECK(huge->scores[0].reason.size() == kLlmReasonBytesMax);
}

TEST_CASE("an opinion lowers scores, and the total with them") {
  LlmOpinion opinion = OpinionOf(4);
  opinion.scores[1] = {1, "three passes"};
  v1::Rubric rubric = Tables(5);
  LowerRubric(opinion, &rubric);
  CHECK(rubric.engineering().score() == 1);
  CHECK(rubric.engineering().table_score() == 5);
  CHECK(rubric.engineering().llm_score() == 1);
  CHECK(rubric.engineering().llm_reason() == "three passes");
  CHECK(rubric.engineering().reason() == "measured");
  CHECK(rubric.total() == 13);
  CHECK(rubric.source() == "llm over tables-v1");
}

TEST_CASE("a judge that obeys the candidate and gives fives lifts nothing") {
  for (int score = 1; score <= 5; ++score) {
    v1::Rubric rubric = Tables(score);
    LowerRubric(OpinionOf(5), &rubric);
    CHECK(rubric.total() == 4 * score);
    CHECK(rubric.anti_hacking().score() == score);
    CHECK(rubric.anti_hacking().llm_score() == 5);
  }
}

TEST_CASE("an opinion that failed leaves the tables as they stand, and says why") {
  v1::Rubric rubric = Tables(4);
  LlmOpinion failed = OpinionOf(1);
  failed.failure = "timed out";
  LowerRubric(failed, &rubric);
  CHECK(rubric.total() == 16);
  CHECK(rubric.engineering().llm_score() == 0);
  CHECK(rubric.source() == "llm failed: timed out; tables-v1 stands");
}

TEST_CASE("a request asks for the same answer each time, and for another after a bad one") {
  const LlmMessages messages{"be strict", "program \xff"};
  const Json first = Json::parse(LlmRequestBody(messages, "m", LlmReplyFormat::kJsonSchema, 0));
  CHECK(first["model"] == "m");
  CHECK(first["temperature"] == 0);
  CHECK(first["seed"] == 1);
  CHECK(first["messages"][0]["role"] == "system");
  const Json& schema = first["response_format"]["json_schema"]["schema"];
  CHECK(schema["required"].size() == 4);
  CHECK(schema["properties"]["engineering"]["properties"]["score"]["enum"] == Json({1, 2, 3, 4, 5}));
  CHECK(schema["properties"]["engineering"]["additionalProperties"] == false);
  const Json second = Json::parse(LlmRequestBody(messages, "m", LlmReplyFormat::kNone, 1));
  CHECK(second["seed"] == 2);
  CHECK_FALSE(second.contains("response_format"));
  CHECK_THAT(second["messages"][1]["content"].get<std::string>(), Catch::Contains("could not be used"));
}

}  // namespace
}  // namespace warpsmith
