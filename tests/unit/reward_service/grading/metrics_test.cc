#include "reward_service/grading/metrics.h"

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/run_together.h"

namespace warpsmith {
namespace {

v1::Grade GradeOf(double compile_seconds, bool cached) {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_CORRECT);
  grade.set_cached(cached);
  grade.mutable_cost()->set_compile_seconds(compile_seconds);
  return grade;
}

TEST_CASE("grades are counted by tenant and verdict, phases where something was measured") {
  Metrics metrics;
  metrics.CountGrade("lab", GradeOf(0.2, false));
  metrics.CountGrade("lab", GradeOf(0.2, true));
  const std::string text = metrics.Text({});
  CHECK_THAT(text, Catch::Contains("warpsmith_reward_grades_total{cached=\"false\",tenant=\"lab\","
                                   "verdict=\"VERDICT_CORRECT\"} 1"));
  CHECK_THAT(text, Catch::Contains("cached=\"true\",tenant=\"lab\",verdict=\"VERDICT_CORRECT\"} 1"));
  CHECK_THAT(text, Catch::Contains("warpsmith_reward_phase_seconds_count{phase=\"compile\"} 1"));
  CHECK_THAT(text, Catch::Contains("warpsmith_reward_phase_seconds_bucket{phase=\"compile\",le=\"0.3\"} 1"));
  CHECK_THAT(text, Catch::Contains("warpsmith_reward_phase_seconds_bucket{phase=\"compile\",le=\"0.1\"} 0"));
  CHECK_THAT(text, !Catch::Contains("phase=\"oracle\""));
}

TEST_CASE("what came of requests to the LLM judge is counted") {
  Metrics metrics;
  metrics.CountLlmJudge("ok");
  metrics.CountLlmJudge("timeout");
  metrics.CountLlmJudge("timeout");
  const std::string text = metrics.Text({.num_to_ask = 3});
  CHECK_THAT(text, Catch::Contains("warpsmith_llm_judge_requests_total{result=\"ok\"} 1"));
  CHECK_THAT(text, Catch::Contains("warpsmith_llm_judge_requests_total{result=\"timeout\"} 2"));
  CHECK_THAT(text, Catch::Contains("warpsmith_reward_waiting{for=\"llm_judge\"} 3"));
}

TEST_CASE("errors, what waits, and the process's memory are told") {
  Metrics metrics;
  metrics.CountError("", absl::UnauthenticatedError("who"));
  const std::string text =
      metrics.Text({.num_requests = 7, .num_to_compile = 2, .num_to_judge = 4, .num_lanes_lost = 1});
  CHECK_THAT(text,
             Catch::Contains("warpsmith_reward_errors_total{status=\"UNAUTHENTICATED\",tenant=\"\"} 1"));
  CHECK_THAT(text, Catch::Contains("warpsmith_reward_waiting{for=\"answer\"} 7"));
  CHECK_THAT(text, Catch::Contains("warpsmith_reward_waiting{for=\"compile_worker\"} 2"));
  CHECK_THAT(text, Catch::Contains("warpsmith_reward_waiting{for=\"lane\"} 4"));
  CHECK_THAT(text, Catch::Contains("warpsmith_reward_lanes_lost 1"));
  CHECK_THAT(text, Catch::Contains("process_resident_memory_bytes "));
}

TEST_CASE("what many threads count while others scrape is all there") {
  Metrics metrics;
  RunTogether(6, [&](int thread) {
    for (int i = 0; i < 100; ++i) {
      if (thread < 4) metrics.CountGrade(i % 2 == 0 ? "lab" : "farm", GradeOf(0.2, false));
      if (thread == 4) metrics.CountError("lab", absl::CancelledError("gone"));
      if (thread == 5) metrics.Text({.num_requests = i});
    }
  });
  const std::string text = metrics.Text({});
  for (const char* tenant : {"lab", "farm"}) {
    CHECK_THAT(text, Catch::Contains(absl::StrCat("cached=\"false\",tenant=\"", tenant,
                                                  "\",verdict=\"VERDICT_CORRECT\"} 200")));
  }
  CHECK_THAT(text, Catch::Contains("status=\"CANCELLED\",tenant=\"lab\"} 100"));
  CHECK_THAT(text, Catch::Contains("warpsmith_reward_phase_seconds_count{phase=\"compile\"} 400"));
}

}  // namespace
}  // namespace warpsmith
