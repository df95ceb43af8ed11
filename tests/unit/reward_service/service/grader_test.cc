#include "reward_service/service/grader.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/rpc/status.h"
#include "reward_service/service/llm_stage.h"
#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

std::shared_ptr<const PreparedRequest> Prepared(const std::string& id, const std::string& source,
                                                const std::string& formula = "") {
  v1::GradeRequest request;
  request.set_request_id(id);
  request.set_formula(formula);
  request.mutable_task()->set_id("task");
  request.mutable_task()->set_reference_source("class Model: pass");
  request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CPP);
  request.mutable_candidate()->set_answer("```cpp\n" + source + "\n```");
  const absl::StatusOr<PreparedRequest> prepared = PrepareRequest(request, {}, "test machine");
  REQUIRE(prepared.ok());
  return std::make_shared<const PreparedRequest>(*prepared);
}

// Collects one answer.
struct Answer {
  absl::Notification arrived;
  absl::StatusOr<v1::Grade> grade = absl::UnknownError("no answer yet");

  GradeDone Done() {
    return [this](absl::StatusOr<v1::Grade> result) {
      grade = std::move(result);
      arrived.Notify();  // a second answer would abort here
    };
  }
  absl::StatusOr<v1::Grade> Wait() {
    REQUIRE(arrived.WaitForNotificationWithTimeout(kPatience));
    return grade;
  }
};

// A grader over a compiler and a referee that do what the test says.
struct Bench {
  FakeRefereeScript script;
  std::atomic<int> num_compiled{0};
  CompileStage::CompileNative compile = [](std::string_view, const std::atomic<bool>&) {
    CompiledProgram program;
    program.library = std::make_shared<const UniqueFd>(*SealedMemfd("library", "bytes"));
    return absl::StatusOr<CompiledProgram>(program);
  };
  std::unique_ptr<CompileStage> compile_stage;
  std::unique_ptr<Grader> grader;

  Grader* Start(GraderOptions options = {}) {
    const auto counted = [this](std::string_view source, const std::atomic<bool>& cancelled) {
      ++num_compiled;
      return compile(source, cancelled);
    };
    compile_stage = std::make_unique<CompileStage>("test compiler", 1 << 16, counted, nullptr);
    std::vector<std::unique_ptr<JudgeStage>> lanes;
    lanes.push_back(
        std::make_unique<JudgeStage>(JudgeStageOptions{}, std::make_unique<FakeReferee>(&script)));
    grader = std::make_unique<Grader>(options, compile_stage.get(), std::move(lanes));
    return grader.get();
  }
};

v1::Grade GradeOf(Grader* grader, const std::shared_ptr<const PreparedRequest>& prepared) {
  Answer answer;
  grader->Submit(prepared, answer.Done());
  const absl::StatusOr<v1::Grade> grade = answer.Wait();
  REQUIRE(grade.ok());
  return *grade;
}

TEST_CASE("a request passes both stages and gets a reward") {
  Bench bench;
  const v1::Grade grade = GradeOf(bench.Start(), Prepared("r1", "int run;"));
  CHECK(grade.request_id() == "r1");
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.compile().succeeded());
  CHECK(grade.reward().value() > 2.0);
  CHECK_FALSE(grade.cached());
}

TEST_CASE("an answer without code is NO_CODE at once") {
  Bench bench;
  const v1::Grade grade = GradeOf(bench.Start(), Prepared("r1", ""));
  CHECK(grade.verdict() == v1::VERDICT_NO_CODE);
  CHECK(grade.reward().value() == 0.0);
  CHECK(bench.num_compiled == 0);
}

TEST_CASE("programs that differ in comments and spacing are measured once") {
  Bench bench;
  Grader* grader = bench.Start();
  GradeOf(grader, Prepared("r1", "int run;"));
  const v1::Grade again = GradeOf(grader, Prepared("r2", "int  run; // the same"));
  CHECK(again.cached());
  CHECK(again.request_id() == "r2");
  CHECK(bench.script.num_judged == 1);
}

TEST_CASE("another formula is computed from the same measurement") {
  Bench bench;
  Grader* grader = bench.Start();
  GradeOf(grader, Prepared("r1", "int run;"));
  const v1::Grade kevin = GradeOf(grader, Prepared("r2", "int run;", "kevin-v1"));
  CHECK(kevin.reward().value() == Approx(2.3));
  CHECK(bench.script.num_judged == 1);
}

TEST_CASE("equal requests in flight are compiled and judged once, and all are answered") {
  Bench bench;
  absl::Notification go;
  bench.script.judge = [&](const JudgeRequest&) {
    go.WaitForNotification();
    return absl::StatusOr<Judgement>(TwiceAsFast());
  };
  Grader* grader = bench.Start();
  std::vector<Answer> answers(8);
  for (size_t i = 0; i < answers.size(); ++i) {
    grader->Submit(Prepared("r" + std::to_string(i), "int run;"), answers[i].Done());
  }
  CHECK(grader->backlog().num_requests == 8);
  go.Notify();
  for (size_t i = 0; i < answers.size(); ++i)
    CHECK(answers[i].Wait()->request_id() == "r" + std::to_string(i));
  CHECK(bench.num_compiled == 1);
  CHECK(bench.script.num_judged == 1);
  CHECK(grader->backlog().num_requests == 0);
}

TEST_CASE("a repeated id gets the same bytes, and the same id with other content is refused") {
  Bench bench;
  Grader* grader = bench.Start();
  const v1::Grade first = GradeOf(grader, Prepared("r1", "int run;"));
  const v1::Grade second = GradeOf(grader, Prepared("r1", "int run;"));
  CHECK(first.SerializeAsString() == second.SerializeAsString());
  Answer answer;
  grader->Submit(Prepared("r1", "int other;"), answer.Done());
  CHECK(absl::IsInvalidArgument(answer.Wait().status()));
}

TEST_CASE("a full queue refuses with a delay, and takes requests again later") {
  Bench bench;
  absl::Notification go;
  bench.script.judge = [&](const JudgeRequest&) {
    go.WaitForNotification();
    return absl::StatusOr<Judgement>(TwiceAsFast());
  };
  Grader* grader = bench.Start({.queue_capacity = 2});
  Answer first, second, third;
  grader->Submit(Prepared("r1", "int a;"), first.Done());
  grader->Submit(Prepared("r2", "int b;"), second.Done());
  grader->Submit(Prepared("r3", "int c;"), third.Done());
  const absl::Status refused = third.Wait().status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(GetRetryDelay(refused).has_value());
  go.Notify();
  CHECK(first.Wait().ok());
  CHECK(second.Wait().ok());
  CHECK(GradeOf(grader, Prepared("r3", "int c;")).verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("the delay of a refusal follows what waits and how long a lane takes for it") {
  Bench bench;
  std::atomic<int64_t> now_seconds{1'000'000};  // passes while a candidate is judged, and only then
  std::atomic<int> judging_seconds{1};
  std::atomic<bool> held{false};
  bench.script.judge = [&](const JudgeRequest&) {
    while (held) absl::SleepFor(absl::Milliseconds(1));
    now_seconds += judging_seconds;
    return absl::StatusOr<Judgement>(TwiceAsFast());
  };
  Grader* grader = bench.Start(
      {.queue_capacity = 4, .now = [&] { return absl::UnixEpoch() + absl::Seconds(now_seconds.load()); }});
  int num_programs = 0;
  const auto program = [&] {
    const std::string name = "a" + std::to_string(num_programs++);
    return Prepared(name, "int " + name + ";");
  };
  const auto seconds_after = [&](int num_judged) {
    for (int i = 0; i < num_judged; ++i) GradeOf(grader, program());
    held = true;
    std::vector<Answer> waiting(4);
    for (Answer& answer : waiting) grader->Submit(program(), answer.Done());
    Answer refused;
    grader->Submit(program(), refused.Done());
    const std::optional<absl::Duration> delay = GetRetryDelay(refused.Wait().status());
    held = false;
    for (Answer& answer : waiting) CHECK(answer.Wait().ok());
    return absl::ToDoubleSeconds(delay.value_or(absl::ZeroDuration()));
  };
  CHECK(seconds_after(50) == Approx(4.0).epsilon(0.05));
  judging_seconds = 5;
  CHECK(seconds_after(100) == Approx(20.0).epsilon(0.1));
  judging_seconds = 100;
  CHECK(seconds_after(10) == 30.0);
}

TEST_CASE("a program that does not compile takes no lane") {
  Bench bench;
  bench.compile = [](std::string_view, const std::atomic<bool>&) {
    CompiledProgram refused;
    refused.diagnostics = "1:1: error: expected ';' before 'float'\n";
    return absl::StatusOr<CompiledProgram>(refused);
  };
  const v1::Grade grade = GradeOf(bench.Start(), Prepared("r1", "int run"));
  CHECK(grade.verdict() == v1::VERDICT_COMPILE_ERROR);
  CHECK(grade.reward().value() == 0.0);
  CHECK(grade.feedback().finding() == "does not compile");
  CHECK(grade.feedback().evidence() == "error: expected ';' before 'float'");
  CHECK(bench.script.num_judged == 0);
}

TEST_CASE("a referee that dies twice costs attempts, not the verdict") {
  Bench bench;
  bench.script.judge = [&](const JudgeRequest&) {
    if (bench.script.num_judged < 3) return absl::StatusOr<Judgement>(absl::UnavailableError("referee died"));
    return absl::StatusOr<Judgement>(TwiceAsFast());
  };
  CHECK(GradeOf(bench.Start(), Prepared("r1", "int run;")).verdict() == v1::VERDICT_CORRECT);
  CHECK(bench.script.num_judged == 3);
}

TEST_CASE("a referee that keeps dying is UNSCORABLE without a reward, and asked again by the next request") {
  Bench bench;
  bench.script.judge = [](const JudgeRequest&) {
    return absl::StatusOr<Judgement>(absl::UnavailableError("referee died"));
  };
  Grader* grader = bench.Start();
  const v1::Grade grade = GradeOf(grader, Prepared("r1", "int run;"));
  CHECK(grade.verdict() == v1::VERDICT_UNSCORABLE);
  CHECK_FALSE(grade.reward().has_value());
  CHECK(grade.verdict_reason().find("referee died") != std::string::npos);
  bench.script.judge = [](const JudgeRequest&) { return absl::StatusOr<Judgement>(TwiceAsFast()); };
  CHECK(GradeOf(grader, Prepared("r1", "int run;")).verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a compiler that cannot run is UNSCORABLE, never a compile error") {
  Bench bench;
  bench.compile = [](std::string_view, const std::atomic<bool>&) {
    absl::SleepFor(absl::Milliseconds(1));
    return absl::StatusOr<CompiledProgram>(absl::ResourceExhaustedError("cannot fork"));
  };
  const v1::Grade grade = GradeOf(bench.Start(), Prepared("r1", "int run;"));
  CHECK(grade.verdict() == v1::VERDICT_UNSCORABLE);
  CHECK_FALSE(grade.reward().has_value());
  CHECK(grade.cost().compile_seconds() > 0);  // what it took is known all the same
}

TEST_CASE("a speed-up that is not a number is UNSCORABLE") {
  Bench bench;
  bench.script.judge = [](const JudgeRequest&) {
    Judgement judgement = TwiceAsFast();
    judgement.timing->speedup = std::numeric_limits<double>::quiet_NaN();
    return absl::StatusOr<Judgement>(judgement);
  };
  const v1::Grade grade = GradeOf(bench.Start(), Prepared("r1", "int run;"));
  CHECK(grade.verdict() == v1::VERDICT_UNSCORABLE);
  CHECK_FALSE(grade.reward().has_value());
}

TEST_CASE("cancelling the only request stops its compilation and frees its place") {
  Bench bench;
  absl::Notification compiling;
  bench.compile = [&](std::string_view, const std::atomic<bool>& cancelled) {
    compiling.Notify();
    while (!cancelled) absl::SleepFor(absl::Milliseconds(1));
    return absl::StatusOr<CompiledProgram>(absl::CancelledError("killed"));
  };
  Grader* grader = bench.Start({.queue_capacity = 1});
  Answer answer;
  const uint64_t ticket = grader->Submit(Prepared("r1", "int run;"), answer.Done());
  REQUIRE(compiling.WaitForNotificationWithTimeout(kPatience));
  grader->Cancel(ticket);
  CHECK(absl::IsCancelled(answer.Wait().status()));
  CHECK(grader->backlog().num_requests == 0);
  CHECK(bench.script.num_judged == 0);
}

TEST_CASE("cancelling one of two requests leaves the other its grade") {
  Bench bench;
  absl::Notification go;
  bench.script.judge = [&](const JudgeRequest&) {
    go.WaitForNotification();
    return absl::StatusOr<Judgement>(TwiceAsFast());
  };
  Grader* grader = bench.Start();
  Answer first, second;
  const uint64_t ticket = grader->Submit(Prepared("r1", "int run;"), first.Done());
  grader->Submit(Prepared("r2", "int run;"), second.Done());
  grader->Cancel(ticket);
  grader->Cancel(ticket);  // twice is as good as once
  go.Notify();
  CHECK(absl::IsCancelled(first.Wait().status()));
  CHECK(second.Wait()->verdict() == v1::VERDICT_CORRECT);
}

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
  Bench bench;
  FakeLlm llm{.post = FakeLlm::Twos};
  Grader* grader = bench.Start({.llm_stage = &llm.stage, .num_llm_requests = 2});
  const v1::Grade first = GradeOf(grader, Prepared("r1", "int run;"));
  CHECK(first.rubric().total() == 8);
  CHECK(first.rubric().source() == "llm over tables-v1");
  CHECK(GradeOf(grader, Prepared("r2", "int  run;", "kevin-v1")).rubric().total() == 8);
  CHECK(llm.num_asked == 1);
  bench.script.judge = [](const JudgeRequest&) {
    Judgement wrong = TwiceAsFast();
    wrong.outcome = Outcome::kIncorrect;
    return absl::StatusOr<Judgement>(wrong);
  };
  CHECK(GradeOf(grader, Prepared("r3", "int other;")).rubric().source() == "neutral");
  CHECK(llm.num_asked == 1);
}

TEST_CASE("another task around the same program asks for another opinion, not for another measurement") {
  Bench bench;
  FakeLlm llm{.post = FakeLlm::Twos};
  Grader* grader = bench.Start({.llm_stage = &llm.stage});
  const auto first = Prepared("r1", "int run;");
  GradeOf(grader, first);
  v1::GradeRequest request = first->request;
  request.set_request_id("r2");
  request.mutable_task()->set_skill(v1::SKILL_OPTIMISE);
  const auto second = std::make_shared<const PreparedRequest>(*PrepareRequest(request, {}, "test machine"));
  const v1::Grade grade = GradeOf(grader, second);
  CHECK(grade.cached());
  CHECK(grade.rubric().source() == "llm over tables-v1");
  CHECK(llm.num_asked == 2);
  CHECK(bench.script.num_judged == 1);
}

TEST_CASE("an LLM judge that fails leaves the grade as the tables make it, and is asked again later") {
  Bench bench;
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
  Bench bench;
  FakeLlm llm;
  absl::Notification asked;
  llm.post = [&](const std::string&, absl::Time deadline, const std::function<bool()>& unwanted) {
    if (!asked.HasBeenNotified()) asked.Notify();
    while (absl::Now() < deadline && !unwanted()) absl::SleepFor(absl::Milliseconds(1));
    return absl::StatusOr<LlmHttpReply>(absl::CancelledError("unwanted"));
  };
  Grader* grader = bench.Start({.llm_stage = &llm.stage});
  Answer first, second;
  grader->Submit(Prepared("r1", "int a;"), first.Done());
  REQUIRE(asked.WaitForNotificationWithTimeout(kPatience));
  bench.script.judge = [](const JudgeRequest&) {
    Judgement wrong = TwiceAsFast();
    wrong.outcome = Outcome::kIncorrect;
    return absl::StatusOr<Judgement>(wrong);
  };
  CHECK(GradeOf(grader, Prepared("r2", "int b;")).verdict() == v1::VERDICT_INCORRECT);
  CHECK_FALSE(first.arrived.HasBeenNotified());
  const absl::Time begin = absl::Now();
  grader->Drain(absl::ZeroDuration());
  CHECK(absl::Now() - begin < absl::Seconds(8));
  CHECK(absl::IsUnavailable(first.Wait().status()));
}

TEST_CASE("draining finishes what was admitted and refuses the rest") {
  Bench bench;
  Grader* grader = bench.Start();
  Answer first, second;
  grader->Submit(Prepared("r1", "int run;"), first.Done());
  grader->Drain(kPatience);
  CHECK(first.Wait()->verdict() == v1::VERDICT_CORRECT);
  grader->Submit(Prepared("r2", "int run;"), second.Done());
  CHECK(absl::IsUnavailable(second.Wait().status()));
}

TEST_CASE("draining without grace answers everybody") {
  Bench bench;
  bench.compile = [](std::string_view, const std::atomic<bool>& cancelled) {
    while (!cancelled) absl::SleepFor(absl::Milliseconds(1));
    return absl::StatusOr<CompiledProgram>(absl::CancelledError("killed"));
  };
  Grader* grader = bench.Start();
  std::vector<Answer> answers(5);
  for (size_t i = 0; i < answers.size(); ++i) {
    grader->Submit(Prepared("r" + std::to_string(i), "int a" + std::to_string(i) + ";"), answers[i].Done());
  }
  grader->Drain(absl::ZeroDuration());
  for (Answer& answer : answers) CHECK(absl::IsUnavailable(answer.Wait().status()));
}

}  // namespace
}  // namespace warpsmith
