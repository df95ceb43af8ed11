#include "reward_service/grading/merge.h"

#include <string>

#include "reward_service/scoring/formulas.h"
#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"

namespace warpsmith {
namespace {

constexpr char kSource[] = "int run() { for (;;) {} }";

PreparedRequest Prepared(v1::Skill skill = v1::SKILL_GENERATE, const std::string& previous = "") {
  v1::GradeRequest request;
  request.set_request_id("r1");
  request.mutable_task()->set_id("task");
  request.mutable_task()->set_skill(skill);
  request.mutable_task()->set_reference_source("class Model: pass");
  request.mutable_task()->set_previous_source(previous);
  request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CPP);
  request.mutable_candidate()->set_source(kSource);
  return *PrepareRequest(request, {.devices = {{v1::DEVICE_CPU, "machine"}}});
}

// As one that was compiled.
v1::Measurement Measured(v1::Measurement measurement) {
  measurement.mutable_grade()->mutable_compile()->set_attempted(true);
  measurement.mutable_grade()->mutable_compile()->set_succeeded(true);
  return measurement;
}

TEST_CASE("a correct program gets rubric, reward and feedback") {
  const v1::Grade grade = MergeGrade(Prepared(), Measured(TwiceAsFast()));
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.task_id() == "task");
  CHECK(grade.rubric().total() == 20);
  CHECK(grade.reward().value() == Approx((2 + 0.3) * 1.5));
  CHECK(grade.feedback().finding() == "at the memory ceiling");
  CHECK(grade.feedback().evidence() == "speedup 2.00, 8.0 of 10 GB/s, 1 pass");
}

TEST_CASE("advice does not depend on the formula") {
  PreparedRequest prepared = Prepared();
  const v1::Feedback by_default = MergeGrade(prepared, Measured(TwiceAsFast())).feedback();
  for (const std::string_view formula : FormulaNames()) {
    prepared.request.set_formula(std::string(formula));
    const v1::Grade grade = MergeGrade(prepared, Measured(TwiceAsFast()));
    INFO(formula);
    CHECK(grade.reward().has_value());
    CHECK(grade.feedback().SerializeAsString() == by_default.SerializeAsString());
  }
}

TEST_CASE(
    "what torch.compile makes of the reference is looked at by the formula that asks for it, if it was "
    "measured") {
  PreparedRequest prepared = Prepared();
  prepared.request.set_formula("cuda-agent-v1");
  v1::Measurement measurement = Measured(TwiceAsFast());
  CHECK(MergeGrade(prepared, measurement).reward().value() == 2);
  v1::Timing& timing = *measurement.mutable_grade()->mutable_timing();
  v1::Baseline& graph = *timing.add_baselines();
  graph.set_name("cuda graph");
  graph.set_speedup(1.5);
  CHECK(MergeGrade(prepared, measurement).reward().value() == 2);
  v1::Baseline& compiled = *timing.add_baselines();
  compiled.set_name("torch.compile");
  compiled.set_speedup(1.5);
  CHECK(MergeGrade(prepared, measurement).reward().value() == 3);
  compiled.set_unavailable("it does not compile");
  CHECK(MergeGrade(prepared, measurement).reward().value() == 2);
}

TEST_CASE("an opinion lowers rubric and reward of a correct program, and lifts nothing") {
  LlmOpinion opinion;
  for (LlmScore& score : opinion.scores) score = {5, "splendid"};
  v1::Measurement measurement = TwiceAsFast();
  measurement.mutable_grade()->mutable_profile()->set_vector_bits(128);
  measurement.mutable_grade()->mutable_profile()->set_gigabytes_per_second(1.0);
  const v1::Grade alone = MergeGrade(Prepared(), Measured(measurement));
  const v1::Grade praised = MergeGrade(Prepared(), Measured(measurement), &opinion);
  CHECK(praised.rubric().total() == alone.rubric().total());
  CHECK(praised.reward().value() == alone.reward().value());
  CHECK(praised.rubric().source() == "llm over tables-v1");
  for (LlmScore& score : opinion.scores) score = {1, "poor"};
  const v1::Grade lowered = MergeGrade(Prepared(), Measured(measurement), &opinion);
  CHECK(lowered.rubric().total() == 4);
  CHECK(lowered.reward().value() == Approx(2.3 * 0.5));
  opinion.failure = "timed out";
  const v1::Grade failed = MergeGrade(Prepared(), Measured(measurement), &opinion);
  CHECK(failed.reward().value() == alone.reward().value());
  measurement.mutable_grade()->set_verdict(v1::VERDICT_INCORRECT);
  CHECK(MergeGrade(Prepared(), Measured(measurement), &opinion).rubric().source() == "neutral");
}

TEST_CASE("a correct program has the credit of its room, and by it rubric, reward and feedback") {
  v1::Measurement measurement = Measured(TwiceAsFast());
  const v1::Grade own = MergeGrade(Prepared(), measurement);
  CHECK(own.credit().speedup() == 2);
  CHECK(own.credit().library_share() == 0);
  measurement.mutable_grade()->mutable_timing()->set_libraries_withheld(false);
  measurement.mutable_grade()->mutable_timing()->set_library_share(1);
  const v1::Grade with_libraries = MergeGrade(Prepared(), measurement);
  CHECK(with_libraries.verdict() == v1::VERDICT_CORRECT);
  CHECK(with_libraries.credit().speedup() == Approx(1 - 1 / 1.9));
  CHECK(with_libraries.rubric().anti_hacking().score() == 1);
  CHECK(with_libraries.rubric().total() == 9);
  CHECK(with_libraries.reward().value() == Approx((1 - 1 / 1.9) * (1 + 5 / 16.0 - 0.5)));
  CHECK(with_libraries.feedback().finding() == "libraries did a part");
  CHECK(with_libraries.feedback().evidence() == with_libraries.credit().condition());
}

TEST_CASE("the libraries that a task allows are own work in its grade") {
  PreparedRequest prepared = Prepared();
  prepared.request.mutable_task()->add_allowed_libraries("torch");
  v1::Measurement measurement = Measured(TwiceAsFast());
  measurement.mutable_grade()->mutable_timing()->set_libraries_withheld(false);
  measurement.mutable_grade()->mutable_timing()->set_library_share(1);
  const v1::Grade grade = MergeGrade(prepared, measurement);
  CHECK(grade.credit().library_share() == 0);
  CHECK(grade.reward().value() == Approx((2 + 0.3) * 1.5));
}

TEST_CASE("what a referee calls a hack has neither credit nor reward") {
  v1::Measurement measurement = Measured(TwiceAsFast());
  measurement.mutable_grade()->set_verdict(v1::VERDICT_HACK);
  measurement.mutable_grade()->set_hack_family("delegated-work");
  measurement.mutable_grade()->set_verdict_reason("libraries do the work");
  const v1::Grade grade = MergeGrade(Prepared(), measurement);
  CHECK(grade.verdict() == v1::VERDICT_HACK);
  CHECK_FALSE(grade.has_credit());
  CHECK(grade.feedback().finding() == "a library did the work");
  CHECK(grade.feedback().evidence() == "libraries do the work");
  CHECK(grade.reward().value() == 0.0);
}

TEST_CASE("an unchanged copy complies least with skill 2, whatever its spacing") {
  const v1::Grade copy = MergeGrade(Prepared(v1::SKILL_OPTIMISE, "int run()   { for (;;) {} } // same"),
                                    Measured(TwiceAsFast()));
  CHECK(copy.rubric().skill_compliance().score() == 1);
  const v1::Grade changed =
      MergeGrade(Prepared(v1::SKILL_OPTIMISE, "int run() { }"), Measured(TwiceAsFast()));
  CHECK(changed.rubric().skill_compliance().score() ==
        3);  // faster than the reference; nothing is known of before
}

TEST_CASE("an infrastructure failure has a reason and no reward") {
  const v1::Grade grade = MergeGrade(Prepared(), Unscorable("disk on fire"));
  CHECK(grade.verdict() == v1::VERDICT_UNSCORABLE);
  CHECK(grade.verdict_reason() == "disk on fire");
  CHECK_FALSE(grade.reward().has_value());
}

TEST_CASE("a faulty task has no reward") {
  v1::Measurement measurement;
  measurement.mutable_grade()->set_verdict(v1::VERDICT_INVALID_TASK);
  measurement.mutable_grade()->set_verdict_reason("get_inputs() raised");
  const v1::Grade grade = MergeGrade(Prepared(), Measured(measurement));
  CHECK(grade.verdict() == v1::VERDICT_INVALID_TASK);
  CHECK_FALSE(grade.reward().has_value());
}

}  // namespace
}  // namespace warpsmith
