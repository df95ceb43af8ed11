#include "reward_service/rubric/feedback.h"

#include <string>

#include "proto/advice_words.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

v1::Grade Incorrect(int64_t num_wrong, int64_t num_elements, double error) {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_INCORRECT);
  grade.mutable_correctness()->set_num_wrong(num_wrong);
  grade.mutable_correctness()->set_num_elements(num_elements);
  grade.mutable_correctness()->set_max_absolute_error(error);
  return grade;
}

v1::Grade Correct(double speedup, int vector_bits, double ceiling_share, double libc_share = 0.0) {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_CORRECT);
  grade.mutable_timing()->set_speedup(speedup);
  v1::Profile* profile = grade.mutable_profile();
  profile->set_num_samples(100);
  profile->set_num_threads(1);
  profile->set_vector_bits(vector_bits);
  profile->set_libc_share(libc_share);
  profile->set_gigabytes_per_second(10 * ceiling_share);
  profile->set_gigabytes_per_second_ceiling(10);
  profile->set_bound("memory");
  return grade;
}

SourceFacts Facts(int nests, int depth = 1, int allocations = 0) { return {true, nests, depth, allocations}; }

void CheckFeedback(const v1::Feedback& feedback, const std::string& finding, const std::string& evidence,
                   const std::string& advice) {
  CHECK(feedback.finding() == finding);
  CHECK(feedback.evidence() == evidence);
  CHECK(std::string(AdviceWords(feedback.advice())) == advice);
}

TEST_CASE("a compile error is told by its first message") {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_COMPILE_ERROR);
  grade.mutable_compile()->set_diagnostics("3:1: error: expected ';' before 'float'\n4:1: error: later\n");
  CheckFeedback(ComputeFeedback(grade, {}, {}), "does not compile", "error: expected ';' before 'float'",
                "fix compile error");
}

TEST_CASE("few wrong elements point at bounds, many at the formula, large magnitudes at numerics") {
  CheckFeedback(ComputeFeedback(Incorrect(7, 524288, 0.52), {}, {}), "wrong values",
                "max error 0.52 at 7 of 524288", "fix bounds");
  CheckFeedback(ComputeFeedback(Incorrect(500000, 524288, 2.149), {}, {}), "wrong values",
                "max error 2.15 at 500000 of 524288", "fix formula");
  CheckFeedback(ComputeFeedback(Incorrect(500000, 524288, 2.0), {}, {.wrong_at_scale_only = true}),
                "wrong values", "max error 2.00 at 500000 of 524288", "fix numerics");
  CheckFeedback(ComputeFeedback(Incorrect(500000, 524288, 2.0), {}, {.out_of_bounds = true}), "wrong values",
                "max error 2.00 at 500000 of 524288", "fix bounds");
}

TEST_CASE("values that are not finite, crashes, shapes and time-outs have their own words") {
  v1::Grade grade = Incorrect(3, 10, 0);
  grade.set_verdict(v1::VERDICT_NON_FINITE);
  CheckFeedback(ComputeFeedback(grade, {}, {}), "not finite", "nan at 3 of 10", "fix numerics");
  grade.set_verdict(v1::VERDICT_RUNTIME_ERROR);
  grade.set_verdict_reason("signal 11");
  CheckFeedback(ComputeFeedback(grade, {}, {}), "crashes", "signal 11", "fix crash");
  grade.set_verdict(v1::VERDICT_WRONG_SHAPE);
  CHECK(ComputeFeedback(grade, {}, {}).finding() == "wrong shape");
  grade.set_verdict(v1::VERDICT_TIMEOUT);
  CHECK(ComputeFeedback(grade, {}, {}).finding() == "times out");
}

TEST_CASE("a slow program is told its first bottleneck") {
  CheckFeedback(ComputeFeedback(Correct(0.57, 512, 0.2), Facts(3), {}), "several passes",
                "speedup 0.57, 3 passes", "fuse passes");
  CheckFeedback(ComputeFeedback(Correct(0.3, 512, 0.2), Facts(2, 1, 1), {}), "memory bound",
                "speedup 0.30, 2 passes", "avoid the temporary");
  CheckFeedback(ComputeFeedback(Correct(0.9, 0, 0.2), Facts(1), {}), "scalar code", "speedup 0.90, 1 pass",
                "vectorise");
  CheckFeedback(ComputeFeedback(Correct(0.1, 0, 0.02), Facts(1), {}), "memory bound", "speedup 0.10, 1 pass",
                "tile");
  CheckFeedback(ComputeFeedback(Correct(0.4, 0, 0.2, 0.8), Facts(1), {}), "compute bound",
                "speedup 0.40, 1 pass", "approximate");
  CheckFeedback(ComputeFeedback(Correct(0.9, 512, 0.2), Facts(1), {.num_lane_cores = 4}), "compute bound",
                "speedup 0.90, 1 pass", "thread");
}

TEST_CASE("a program near the ceiling is left alone") {
  CheckFeedback(ComputeFeedback(Correct(2.4, 512, 0.9), Facts(1), {}), "as fast as it gets",
                "speedup 2.40, 1 pass", "keep");
  CheckFeedback(ComputeFeedback(Correct(2.4, 0, 0.9), Facts(3), {}), "as fast as it gets",
                "speedup 2.40, 3 passes", "keep");
}

TEST_CASE("what is not the candidate's fault gives no feedback") {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_UNSCORABLE);
  CHECK(ComputeFeedback(grade, {}, {}).finding() == "");
  grade.set_verdict(v1::VERDICT_INVALID_TASK);
  CHECK(ComputeFeedback(grade, {}, {}).finding() == "");
}

}  // namespace
}  // namespace warpsmith
