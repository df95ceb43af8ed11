// The grader's third stage: opinions of an LLM judge.
#include <nlohmann/json.hpp>

#include "reward_service/grading/llm_stage.h"
#include "tests/support/grader_fixture.h"

namespace warpsmith {
namespace {

constexpr char kPrompt[] =
    "[system]\n{{nonce}}\n[user]\n{{nonce}}{{language}}{{task}}{{evidence}}{{reference}}{{previous}}{{"
    "candidate}}";

// An LLM judge that answers as the test says.
struct FakeLlm {
  LlmPost post;
  std::atomic<int> num_asked{0};
  LlmStage stage{{.model = "m", .timeout = absl::Seconds(10)},
                 *LlmPrompt::Parse(kPrompt),
                 [this](const std::string& body, absl::Time deadline, const std::function<bool()>& unwanted) {
                   ++num_asked;
                   return post(body, deadline, unwanted);
                 },
                 [](const char*) {}};

  static absl::StatusOr<LlmHttpReply> Twos(const std::string&, absl::Time, const std::function<bool()>&) {
    nlohmann::json scores;
    for (const char* name : kLlmDimensions) scores[name] = {{"score", 2}, {"reason", "seen"}};
    return LlmHttpReply{
        200, nlohmann::json{{"choices", {{{"message", {{"content", scores.dump()}}}}}}}.dump(), {}};
  }
};

TEST_CASE("an LLM judge is asked once for a measurement and a task, and never about wrong programs") {
  GraderBench bench;
  FakeLlm llm{.post = FakeLlm::Twos};
  Grader* grader = bench.Start({.llm_stage = &llm.stage, .num_llm_requests = 2});
  const v1::Grade first = GradeOf(grader, Prepared("r1", "int run;"));
  CHECK(first.rubric().total() == 8);
  CHECK(first.rubric().source() == "llm over tables-v1");
  CHECK(GradeOf(grader, Prepared("r2", "int  run;", "kevin-v1")).rubric().total() == 8);
  CHECK(llm.num_asked == 1);
  bench.script.judge = [](const JudgeRequest&) {
    v1::Measurement wrong = TwiceAsFast();
    wrong.mutable_grade()->set_verdict(v1::VERDICT_INCORRECT);
    return absl::StatusOr<v1::Measurement>(wrong);
  };
  CHECK(GradeOf(grader, Prepared("r3", "int other;")).rubric().source() == "neutral");
  CHECK(llm.num_asked == 1);
}

TEST_CASE("another task around the same program asks for another opinion, not for another measurement") {
  GraderBench bench;
  FakeLlm llm{.post = FakeLlm::Twos};
  Grader* grader = bench.Start({.llm_stage = &llm.stage});
  const auto first = Prepared("r1", "int run;");
  GradeOf(grader, first);
  v1::GradeRequest request = first->request;
  request.set_request_id("r2");
  request.mutable_task()->set_skill(v1::SKILL_OPTIMISE);
  const auto second = std::make_shared<const PreparedRequest>(*PrepareRequest(request, kTestMachine));
  const v1::Grade grade = GradeOf(grader, second);
  CHECK(grade.cached());
  CHECK(grade.rubric().source() == "llm over tables-v1");
  CHECK(llm.num_asked == 2);
  CHECK(bench.script.num_judged == 1);
}

TEST_CASE("an LLM judge that fails leaves the grade as the tables make it, and is asked again later") {
  GraderBench bench;
  FakeLlm llm;
  llm.post = [](const std::string&, absl::Time, const std::function<bool()>&) {
    return absl::StatusOr<LlmHttpReply>(absl::DeadlineExceededError("timed out"));
  };
  Grader* grader = bench.Start({.llm_stage = &llm.stage});
  const v1::Grade grade = GradeOf(grader, Prepared("r1", "int run;"));
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.reward().value() > 2.0);
  CHECK(grade.rubric().source() == "llm failed: timed out; tables-v1 stands");
  llm.post = FakeLlm::Twos;
  CHECK(GradeOf(grader, Prepared("r2", "int run;")).rubric().source() == "llm over tables-v1");
  CHECK(GradeOf(grader, Prepared("r1", "int run;")).rubric().source() == grade.rubric().source());
  CHECK(bench.script.num_judged == 1);
}

TEST_CASE("an LLM judge that hangs holds neither the lane nor a drain") {
  GraderBench bench;
  FakeLlm llm;
  absl::Notification asked;
  llm.post = [&](const std::string&, absl::Time deadline, const std::function<bool()>& unwanted) {
    if (!asked.HasBeenNotified()) asked.Notify();
    while (absl::Now() < deadline && !unwanted()) absl::SleepFor(absl::Milliseconds(1));
    return absl::StatusOr<LlmHttpReply>(absl::CancelledError("unwanted"));
  };
  Grader* grader = bench.Start({.llm_stage = &llm.stage});
  AwaitedGrade first, second;
  grader->Submit(Prepared("r1", "int a;"), first.Done());
  REQUIRE(asked.WaitForNotificationWithTimeout(kPatience));
  bench.script.judge = [](const JudgeRequest&) {
    v1::Measurement wrong = TwiceAsFast();
    wrong.mutable_grade()->set_verdict(v1::VERDICT_INCORRECT);
    return absl::StatusOr<v1::Measurement>(wrong);
  };
  CHECK(GradeOf(grader, Prepared("r2", "int b;")).verdict() == v1::VERDICT_INCORRECT);
  CHECK_FALSE(first.arrived.HasBeenNotified());
  const absl::Time begin = absl::Now();
  grader->Drain(absl::ZeroDuration());
  CHECK(absl::Now() - begin < absl::Seconds(8));
  CHECK(absl::IsUnavailable(first.Wait().status()));
}

}  // namespace
}  // namespace warpsmith
