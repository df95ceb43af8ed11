#include "reward_service/grading/grader.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/rpc/status.h"
#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"
#include "tests/support/grader_fixture.h"

namespace warpsmith {
namespace {

TEST_CASE("a request passes both stages and gets a reward") {
  GraderBench bench;
  const v1::Grade grade = GradeOf(bench.Start(), Prepared("r1", "int run;"));
  CHECK(grade.request_id() == "r1");
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.compile().succeeded());
  CHECK(grade.reward().value() > 2.0);
  CHECK_FALSE(grade.cached());
}

TEST_CASE("an answer without code is NO_CODE at once") {
  GraderBench bench;
  const v1::Grade grade = GradeOf(bench.Start(), Prepared("r1", ""));
  CHECK(grade.verdict() == v1::VERDICT_NO_CODE);
  CHECK(grade.reward().value() == 0.0);
  CHECK(bench.num_compiled == 0);
}

TEST_CASE("programs that differ in comments and spacing are measured once") {
  GraderBench bench;
  Grader* grader = bench.Start();
  GradeOf(grader, Prepared("r1", "int run;"));
  const v1::Grade again = GradeOf(grader, Prepared("r2", "int  run; // the same"));
  CHECK(again.cached());
  CHECK(again.request_id() == "r2");
  CHECK(bench.script.num_judged == 1);
}

TEST_CASE("another formula is computed from the same measurement") {
  GraderBench bench;
  Grader* grader = bench.Start();
  GradeOf(grader, Prepared("r1", "int run;"));
  const v1::Grade kevin = GradeOf(grader, Prepared("r2", "int run;", "kevin-v1"));
  CHECK(kevin.reward().value() == Approx(2.3));
  CHECK(bench.script.num_judged == 1);
}

TEST_CASE("equal requests in flight are compiled and judged once, and all are answered") {
  GraderBench bench;
  absl::Notification go;
  bench.script.judge = [&](const JudgeRequest&) {
    go.WaitForNotification();
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  Grader* grader = bench.Start();
  std::vector<AwaitedGrade> answers(8);
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
  GraderBench bench;
  Grader* grader = bench.Start();
  const v1::Grade first = GradeOf(grader, Prepared("r1", "int run;"));
  const v1::Grade second = GradeOf(grader, Prepared("r1", "int run;"));
  CHECK(first.SerializeAsString() == second.SerializeAsString());
  AwaitedGrade answer;
  grader->Submit(Prepared("r1", "int other;"), answer.Done());
  CHECK(absl::IsInvalidArgument(answer.Wait().status()));
}

TEST_CASE("a measurement is merged without the grader's lock") {
  GraderBench bench;
  std::atomic<int> num_merged{0};
  std::atomic<bool> lock_was_free{true};
  const auto merge = [&](const PreparedRequest& prepared, const v1::Measurement& measurement,
                         const LlmOpinion* opinion) {
    ++num_merged;
    // backlog() takes the lock. On another thread, so that a lock that is held fails the test and does not hang it.
    auto asked = std::make_shared<absl::Notification>();
    std::thread([grader = bench.grader.get(), asked] {
      (void)grader->backlog();
      asked->Notify();
    }).detach();
    if (!asked->WaitForNotificationWithTimeout(absl::Seconds(5))) lock_was_free = false;
    return MergeGrade(prepared, measurement, opinion);
  };
  Grader* grader = bench.Start({.merge = merge});
  GradeOf(grader, Prepared("measured", "int run;"));
  GradeOf(grader, Prepared("from the cache", "int run;"));
  GradeOf(grader, Prepared("no code", ""));
  CHECK(num_merged == 3);
  CHECK(lock_was_free);
}

TEST_CASE("two answers under one id at the same time are the first one's") {
  GraderBench bench;
  absl::Notification merging, go;
  std::atomic<int> num_merged{0};
  std::atomic<int> num_observed{0};
  const auto merge = [&](const PreparedRequest& prepared, const v1::Measurement& measurement,
                         const LlmOpinion* opinion) {
    const int call = ++num_merged;
    if (call == 1) {
      merging.Notify();
      go.WaitForNotification();
    }
    v1::Grade grade = MergeGrade(prepared, measurement, opinion);
    grade.set_verdict_reason("merged as number " + std::to_string(call));
    return grade;
  };
  Grader* grader =
      bench.Start({.observer = [&](const auto&, const v1::Grade&) { ++num_observed; }, .merge = merge});
  AwaitedGrade slow, quick;
  grader->Submit(Prepared("r1", "int run;"), slow.Done());
  REQUIRE(merging.WaitForNotificationWithTimeout(kPatience));
  grader->Submit(Prepared("r1", "int run;"), quick.Done());
  CHECK(quick.Wait()->verdict_reason() == "merged as number 2");
  go.Notify();
  CHECK(slow.Wait()->SerializeAsString() == quick.Wait()->SerializeAsString());
  CHECK(GradeOf(grader, Prepared("r1", "int run;")).verdict_reason() == "merged as number 2");
  CHECK(num_merged == 2);
  CHECK(num_observed == 1);
}

TEST_CASE("an id stands for its content from its first request on, also while that is being merged") {
  GraderBench bench;
  absl::Notification merging, go;
  const auto merge = [&](const PreparedRequest& prepared, const v1::Measurement& measurement,
                         const LlmOpinion* opinion) {
    if (prepared.request.request_id() == "r2") {
      merging.Notify();
      go.WaitForNotification();
    }
    return MergeGrade(prepared, measurement, opinion);
  };
  Grader* grader = bench.Start({.merge = merge});
  GradeOf(grader, Prepared("r1", "int run;"));
  AwaitedGrade cached, other;
  std::thread client([&] { grader->Submit(Prepared("r2", "int run;"), cached.Done()); });
  REQUIRE(merging.WaitForNotificationWithTimeout(kPatience));
  grader->Submit(Prepared("r2", "int other;"), other.Done());
  CHECK(absl::IsInvalidArgument(other.Wait().status()));
  go.Notify();
  client.join();
  CHECK(cached.Wait()->cached());
}

TEST_CASE("an id that another default formula answered is refused, not answered as if by this one") {
  GraderBench bench;
  Grader* grader = bench.Start();
  auto earlier = std::make_shared<PreparedRequest>(*Prepared("r1", "int run;", "kevin-v1"));
  GradeOf(grader, earlier);
  auto later = std::make_shared<PreparedRequest>(*earlier);
  later->request.set_formula("warpsmith-v3");  // as the reception does, after the request was hashed
  AwaitedGrade answer;
  grader->Submit(later, answer.Done());
  const absl::Status refused = answer.Wait().status();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK_THAT(std::string(refused.message()), Catch::Contains("r1 was answered by the formula kevin-v1"));
}

TEST_CASE("a full queue refuses with a delay, and takes requests again later") {
  GraderBench bench;
  absl::Notification go;
  bench.script.judge = [&](const JudgeRequest&) {
    go.WaitForNotification();
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  Grader* grader = bench.Start({.queue_capacity = 2});
  AwaitedGrade first, second, third;
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
  GraderBench bench;
  std::atomic<int64_t> now_seconds{1'000'000};  // passes while a candidate is judged, and only then
  std::atomic<int> judging_seconds{1};
  std::atomic<bool> held{false};
  bench.script.judge = [&](const JudgeRequest&) {
    while (held) absl::SleepFor(absl::Milliseconds(1));
    now_seconds += judging_seconds;
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
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
    std::vector<AwaitedGrade> waiting(4);
    for (AwaitedGrade& answer : waiting) grader->Submit(program(), answer.Done());
    AwaitedGrade refused;
    grader->Submit(program(), refused.Done());
    const std::optional<absl::Duration> delay = GetRetryDelay(refused.Wait().status());
    held = false;
    for (AwaitedGrade& answer : waiting) CHECK(answer.Wait().ok());
    return absl::ToDoubleSeconds(delay.value_or(absl::ZeroDuration()));
  };
  CHECK(seconds_after(50) == Approx(4.0).epsilon(0.05));
  judging_seconds = 5;
  CHECK(seconds_after(100) == Approx(20.0).epsilon(0.1));
  judging_seconds = 100;
  CHECK(seconds_after(10) == 30.0);
}

TEST_CASE("a program that does not compile takes no lane") {
  GraderBench bench;
  bench.compile = [](const PreparedRequest&, const std::atomic<bool>&) {
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
  GraderBench bench;
  bench.script.judge = [&](const JudgeRequest&) {
    if (bench.script.num_judged < 3)
      return absl::StatusOr<v1::Measurement>(absl::UnavailableError("referee died"));
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  CHECK(GradeOf(bench.Start(), Prepared("r1", "int run;")).verdict() == v1::VERDICT_CORRECT);
  CHECK(bench.script.num_judged == 3);
}

TEST_CASE("a referee that keeps dying is UNSCORABLE without a reward, and asked again by the next request") {
  GraderBench bench;
  bench.script.judge = [](const JudgeRequest&) {
    return absl::StatusOr<v1::Measurement>(absl::UnavailableError("referee died"));
  };
  Grader* grader = bench.Start();
  const v1::Grade grade = GradeOf(grader, Prepared("r1", "int run;"));
  CHECK(grade.verdict() == v1::VERDICT_UNSCORABLE);
  CHECK_FALSE(grade.reward().has_value());
  CHECK(grade.verdict_reason().find("referee died") != std::string::npos);
  bench.script.judge = [](const JudgeRequest&) { return absl::StatusOr<v1::Measurement>(TwiceAsFast()); };
  CHECK(GradeOf(grader, Prepared("r1", "int run;")).verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a compiler that cannot run is UNSCORABLE, never a compile error") {
  GraderBench bench;
  bench.compile = [](const PreparedRequest&, const std::atomic<bool>&) {
    absl::SleepFor(absl::Milliseconds(1));
    return absl::StatusOr<CompiledProgram>(absl::ResourceExhaustedError("cannot fork"));
  };
  const v1::Grade grade = GradeOf(bench.Start(), Prepared("r1", "int run;"));
  CHECK(grade.verdict() == v1::VERDICT_UNSCORABLE);
  CHECK_FALSE(grade.reward().has_value());
  CHECK(grade.cost().compile_seconds() > 0);  // what it took is known all the same
}

TEST_CASE("a speed-up that is not a number is UNSCORABLE") {
  GraderBench bench;
  bench.script.judge = [](const JudgeRequest&) {
    v1::Measurement measurement = TwiceAsFast();
    measurement.mutable_grade()->mutable_timing()->set_speedup(std::numeric_limits<double>::quiet_NaN());
    return absl::StatusOr<v1::Measurement>(measurement);
  };
  const v1::Grade grade = GradeOf(bench.Start(), Prepared("r1", "int run;"));
  CHECK(grade.verdict() == v1::VERDICT_UNSCORABLE);
  CHECK_FALSE(grade.reward().has_value());
}

TEST_CASE("cancelling the only request stops its compilation and frees its place") {
  GraderBench bench;
  absl::Notification compiling;
  bench.compile = [&](const PreparedRequest&, const std::atomic<bool>& cancelled) {
    compiling.Notify();
    while (!cancelled) absl::SleepFor(absl::Milliseconds(1));
    return absl::StatusOr<CompiledProgram>(absl::CancelledError("killed"));
  };
  Grader* grader = bench.Start({.queue_capacity = 1});
  AwaitedGrade answer;
  const uint64_t ticket = grader->Submit(Prepared("r1", "int run;"), answer.Done());
  REQUIRE(compiling.WaitForNotificationWithTimeout(kPatience));
  grader->Cancel(ticket);
  CHECK(absl::IsCancelled(answer.Wait().status()));
  CHECK(grader->backlog().num_requests == 0);
  CHECK(bench.script.num_judged == 0);
}

TEST_CASE("cancelling one of two requests leaves the other its grade") {
  GraderBench bench;
  absl::Notification go;
  bench.script.judge = [&](const JudgeRequest&) {
    go.WaitForNotification();
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  Grader* grader = bench.Start();
  AwaitedGrade first, second;
  const uint64_t ticket = grader->Submit(Prepared("r1", "int run;"), first.Done());
  grader->Submit(Prepared("r2", "int run;"), second.Done());
  grader->Cancel(ticket);
  grader->Cancel(ticket);  // twice is as good as once
  go.Notify();
  CHECK(absl::IsCancelled(first.Wait().status()));
  CHECK(second.Wait()->verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("draining finishes what was admitted and refuses the rest") {
  GraderBench bench;
  Grader* grader = bench.Start();
  AwaitedGrade first, second;
  grader->Submit(Prepared("r1", "int run;"), first.Done());
  grader->Drain(kPatience);
  CHECK(first.Wait()->verdict() == v1::VERDICT_CORRECT);
  grader->Submit(Prepared("r2", "int run;"), second.Done());
  CHECK(absl::IsUnavailable(second.Wait().status()));
}

TEST_CASE("draining without grace answers everybody") {
  GraderBench bench;
  bench.compile = [](const PreparedRequest&, const std::atomic<bool>& cancelled) {
    while (!cancelled) absl::SleepFor(absl::Milliseconds(1));
    return absl::StatusOr<CompiledProgram>(absl::CancelledError("killed"));
  };
  Grader* grader = bench.Start();
  std::vector<AwaitedGrade> answers(5);
  for (size_t i = 0; i < answers.size(); ++i) {
    grader->Submit(Prepared("r" + std::to_string(i), "int a" + std::to_string(i) + ";"), answers[i].Done());
  }
  grader->Drain(absl::ZeroDuration());
  for (AwaitedGrade& answer : answers) CHECK(absl::IsUnavailable(answer.Wait().status()));
}

}  // namespace
}  // namespace warpsmith
