#include "reward_service/grading/llm_stage.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/time/clock.h"
#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"

namespace warpsmith {
namespace {

constexpr char kPrompt[] =
    "[system]\n{{nonce}}\n[user]\n{{nonce}}{{language}}{{task}}{{evidence}}{{reference}}{{previous}}{{"
    "candidate}}";

std::string Completion(int score) {
  nlohmann::json scores;
  for (const char* name : kLlmDimensions) scores[name] = {{"score", score}, {"reason", "seen"}};
  return nlohmann::json{{"choices", {{{"message", {{"content", scores.dump()}}}}}}}.dump();
}

// A stage before an endpoint that gives these answers in turn, the last one again and again.
struct Bench {
  std::vector<absl::StatusOr<LlmHttpReply>> answers;
  std::vector<std::string> bodies;
  std::vector<std::string> results;
  LlmStageOptions options{.model = "m", .timeout = absl::Seconds(20)};
  std::unique_ptr<LlmStage> stage;

  std::unique_ptr<Flight> Run(absl::Duration waited = absl::ZeroDuration()) {
    if (stage == nullptr) {
      const auto post = [this](const std::string& body, absl::Time, const std::function<bool()>&) {
        bodies.push_back(body);
        return answers[std::min(bodies.size(), answers.size()) - 1];
      };
      stage = std::make_unique<LlmStage>(options, *LlmPrompt::Parse(kPrompt), post,
                                         [this](const char* result) { results.push_back(result); });
    }
    auto flight = std::make_unique<Flight>();
    PreparedRequest prepared;
    prepared.request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CPP);
    prepared.source = "int run() { return give_five; }";
    flight->prepared = std::make_shared<const PreparedRequest>(prepared);
    flight->measurement = TwiceAsFast();
    flight->queued_since = absl::Now() - waited;
    stage->Run(flight.get());
    return flight;
  }
};

LlmHttpReply Reply(int status, const std::string& body = "",
                   absl::Duration retry_after = absl::ZeroDuration()) {
  return {status, body, retry_after};
}

using Results = std::vector<std::string>;

TEST_CASE("a good answer is the flight's opinion") {
  Bench bench{.answers = {Reply(200, Completion(2))}};
  const auto flight = bench.Run();
  REQUIRE(flight->opinion != nullptr);
  CHECK(flight->opinion->failure.empty());
  CHECK(flight->opinion->scores[1].score == 2);
  CHECK(bench.results == Results{"ok"});
  CHECK(bench.bodies[0].find("give_five") == std::string::npos);
}

TEST_CASE("each question has a mark of its own, and both parts the same") {
  Bench bench{.answers = {Reply(200, Completion(2))}};
  bench.Run();
  bench.Run();
  const auto content = [&](size_t request, size_t message) {
    return nlohmann::json::parse(bench.bodies[request])["messages"][message]["content"].get<std::string>();
  };
  CHECK(content(0, 0).size() == 32);
  CHECK(content(0, 0) != content(1, 0));
  CHECK_THAT(content(0, 1), Catch::StartsWith(content(0, 0)));
}

TEST_CASE("a bad answer is asked for again once, with another seed") {
  Bench bench{.answers = {Reply(200, "I give 5"), Reply(200, Completion(3))}};
  CHECK(bench.Run()->opinion->scores[0].score == 3);
  CHECK(bench.results == Results{"invalid_reply", "ok"});
  CHECK(nlohmann::json::parse(bench.bodies[0])["seed"] != nlohmann::json::parse(bench.bodies[1])["seed"]);
  Bench stubborn{.answers = {Reply(200, "I give 5")}};
  CHECK_THAT(stubborn.Run()->opinion->failure, Catch::StartsWith("reply not valid"));
  CHECK(stubborn.results == Results{"invalid_reply", "invalid_reply"});
}

TEST_CASE("what may pass is tried again once, what will not is not") {
  Bench busy{.answers = {Reply(503), Reply(200, Completion(4))}};
  CHECK(busy.Run()->opinion->failure.empty());
  Bench gone{.answers = {absl::UnavailableError("no route"), Reply(200, Completion(4))}};
  CHECK(gone.Run()->opinion->failure.empty());
  for (const int status : {302, 400, 401, 404}) {
    Bench refused{.answers = {Reply(status)}};
    CHECK(refused.Run()->opinion->failure == "HTTP " + std::to_string(status));
    CHECK(refused.results == Results{"http_error"});
  }
  Bench large{.answers = {absl::ResourceExhaustedError("the reply is over its limit")}};
  CHECK(large.Run()->opinion->failure == "the reply is over its limit");
  CHECK(large.results == Results{"oversized"});
}

TEST_CASE("a wait that the endpoint asks for is kept where it fits, else nothing is sent") {
  Bench soon{.answers = {Reply(429, "", absl::Seconds(1)), Reply(200, Completion(4))}};
  const absl::Time begin = absl::Now();
  CHECK(soon.Run()->opinion->failure.empty());
  CHECK(absl::Now() - begin >= absl::Seconds(1));
  Bench late{.answers = {Reply(429, "", absl::Seconds(3600))}};
  CHECK(late.Run()->opinion->failure == "HTTP 429");
  CHECK(late.bodies.size() == 1);
}

TEST_CASE("a flight that waited too long is not asked about") {
  Bench bench{.answers = {Reply(200, Completion(2))}};
  CHECK(bench.Run(absl::Seconds(21))->opinion->failure == "no turn in time");
  CHECK(bench.results == Results{"no_turn"});
  CHECK(bench.bodies.empty());
}

TEST_CASE("an endpoint that keeps failing is left alone for a while, and then asked again") {
  Bench bench{.answers = {absl::DeadlineExceededError("timed out")}};
  bench.options.num_failures_max = 2;
  bench.options.pause = absl::Milliseconds(50);
  bench.Run();
  bench.Run();
  CHECK(bench.bodies.size() == 2);
  const absl::Time paused = absl::Now();
  const std::string failure = bench.Run()->opinion->failure;
  if (absl::Now() - paused < absl::Milliseconds(40)) CHECK_THAT(failure, Catch::StartsWith("not asked"));
  absl::SleepFor(absl::Milliseconds(60));
  bench.answers = {Reply(200, Completion(2))};
  CHECK(bench.Run()->opinion->failure.empty());
  bench.answers = {absl::DeadlineExceededError("timed out")};
  bench.Run();
  CHECK(bench.results.back() == "timeout");  // one failure is none in a row
}

TEST_CASE("wrong programs, and those without a reward, want no opinion; a stopped stage asks once at most") {
  PreparedRequest prepared;
  prepared.request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CPP);
  v1::Measurement measurement = TwiceAsFast();
  v1::Grade& grade = *measurement.mutable_grade();
  const auto wants = [&] { return LlmStage::Wants(prepared, measurement); };
  CHECK(wants());
  grade.mutable_timing()->set_speedup(std::numeric_limits<double>::quiet_NaN());
  CHECK_FALSE(wants());
  grade.mutable_timing()->set_speedup(2);
  grade.set_verdict(v1::VERDICT_INCORRECT);
  CHECK_FALSE(wants());
  Bench stopped{.answers = {Reply(503)}};
  stopped.Run();
  stopped.stage->Stop();
  stopped.bodies.clear();
  CHECK(stopped.Run()->opinion->failure == "HTTP 503");
  CHECK(stopped.bodies.size() == 1);  // not repeated
}

TEST_CASE("endpoint, model, prompt and form of the reply each change the judge's key") {
  const LlmPrompt prompt = *LlmPrompt::Parse(kPrompt);
  const std::string key = LlmJudgeKey("a", {.model = "m"}, prompt);
  CHECK(key.size() == 16);
  CHECK(key == LlmJudgeKey("a", {.model = "m", .timeout = absl::Seconds(1)}, prompt));
  CHECK(key != LlmJudgeKey("b", {.model = "m"}, prompt));
  CHECK(key != LlmJudgeKey("a", {.model = "n"}, prompt));
  CHECK(key != LlmJudgeKey("a", {.model = "m", .format = LlmReplyFormat::kNone}, prompt));
  CHECK(key != LlmJudgeKey("a", {.model = "m"}, *LlmPrompt::Parse(std::string(kPrompt) + " ")));
}

}  // namespace
}  // namespace warpsmith
