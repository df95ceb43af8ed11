#include "reward_service/scoring/feedback.h"

#include <string>
#include <utility>

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

struct Measured {
  double speedup = 2.0;
  bool distinguishable = true;
  double ceiling_share = 0.3;
  int vector_bits = 512;
  double libc_share = 0.0;
  int num_samples = 100;
  const char* bound = "compute";
};

v1::Grade Correct(const Measured& measured) {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_CORRECT);
  grade.mutable_timing()->set_speedup(measured.speedup);
  grade.mutable_timing()->set_distinguishable(measured.distinguishable);
  v1::Profile* profile = grade.mutable_profile();
  profile->set_num_samples(measured.num_samples);
  profile->set_own_code_share(1.0);
  profile->set_num_threads(1);
  profile->set_vector_bits(measured.vector_bits);
  profile->set_libc_share(measured.libc_share);
  profile->set_gigabytes_per_second(28 * measured.ceiling_share);
  profile->set_gigabytes_per_second_ceiling(28);
  profile->set_bound(measured.bound);
  return grade;
}

v1::AdviceFacts OnCores(int num_lane_cores) {
  v1::AdviceFacts advice_facts;
  advice_facts.set_num_lane_cores(num_lane_cores);
  return advice_facts;
}

v1::AdviceFacts WrongAtScale() {
  v1::AdviceFacts advice_facts;
  advice_facts.set_wrong_at_scale_only(true);
  return advice_facts;
}

v1::AdviceFacts OutOfBounds() {
  v1::AdviceFacts advice_facts;
  advice_facts.set_out_of_bounds(true);
  return advice_facts;
}

v1::AdviceFacts InputMutated() {
  v1::AdviceFacts advice_facts;
  advice_facts.set_input_mutated(true);
  return advice_facts;
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
  CheckFeedback(ComputeFeedback(Incorrect(500000, 524288, 2.0), {}, WrongAtScale()), "wrong values",
                "max error 2.00 at 500000 of 524288", "fix numerics");
  CheckFeedback(ComputeFeedback(Incorrect(100, 524288, 2.0), {}, WrongAtScale()), "wrong values",
                "max error 2.00 at 100 of 524288", "fix numerics");
  CheckFeedback(ComputeFeedback(Incorrect(500000, 524288, 2.0), {}, OutOfBounds()), "wrong values",
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

TEST_CASE("a program that walks columns is told so before anything of its instructions") {
  SourceFacts columns = Facts(1, 2);
  columns.strided = true;
  columns.calls_libm = true;
  const char* evidence = "speedup 0.08, 0.5 of 28 GB/s, 1 pass";
  for (const int vector_bits : {0, 128, 512}) {
    for (const int num_samples : {0, 100}) {
      const v1::Grade grade = Correct({.speedup = 0.079,
                                       .ceiling_share = 0.018,
                                       .vector_bits = vector_bits,
                                       .libc_share = 0.8,
                                       .num_samples = num_samples});
      CheckFeedback(ComputeFeedback(grade, columns, OnCores(4)), "strided walk", evidence, "tile");
    }
  }
  // In the caches of a short call, and near the ceiling, strides cost nothing.
  CHECK(ComputeFeedback(Correct({.ceiling_share = 0.018, .bound = "latency"}), columns, {}).finding() !=
        "strided walk");
  CHECK(ComputeFeedback(Correct({.ceiling_share = 0.8}), columns, {}).finding() == "at the memory ceiling");
}

TEST_CASE("a correct program is told its most certain bottleneck, with the numbers that show it") {
  const auto check = [](const Measured& measured, const SourceFacts& facts,
                        const v1::AdviceFacts& advice_facts, const std::string& finding,
                        const std::string& evidence, const std::string& advice) {
    CheckFeedback(ComputeFeedback(Correct(measured), facts, advice_facts), finding, evidence, advice);
  };
  check({.speedup = 0.57}, Facts(3), {}, "several passes", "speedup 0.57, 8.4 of 28 GB/s, 3 passes",
        "fuse passes");
  check({.speedup = 0.3, .num_samples = 0}, Facts(2, 1, 1), {}, "temporary array",
        "speedup 0.30, 8.4 of 28 GB/s, 2 passes, 1 array", "avoid the temporary");
  check({.speedup = 0.9, .vector_bits = 0, .libc_share = 0.9}, Facts(1), {}, "scalar code",
        "speedup 0.90, 8.4 of 28 GB/s, 1 pass", "vectorise");
  check({}, Facts(1), OnCores(4), "idle cores", "speedup 2.00, 8.4 of 28 GB/s, 1 pass, 1 of 4 threads",
        "thread");
  SourceFacts exponentials = Facts(1);
  exponentials.calls_libm = true;
  check({.libc_share = 0.8}, exponentials, {}, "costly functions",
        "speedup 2.00, 8.4 of 28 GB/s, 1 pass, 80 % in libm", "approximate");
  check({.speedup = 0.4}, Facts(1, 3), {}, "deep loops", "speedup 0.40, 8.4 of 28 GB/s, 1 pass, 3 deep",
        "tile");
}

TEST_CASE("copies of memory are no costly functions") {
  CHECK(ComputeFeedback(Correct({.libc_share = 0.9}), Facts(1), {}).finding() == "nothing to gain found");
}

TEST_CASE("a slower program near the ceiling is told what moves its data twice") {
  const Measured slower{.speedup = 0.8, .ceiling_share = 0.7};
  CHECK(ComputeFeedback(Correct(slower), Facts(3), {}).advice() == v1::ADVICE_FUSE_PASSES);
  CHECK(ComputeFeedback(Correct(slower), Facts(2, 1, 1), {}).advice() == v1::ADVICE_AVOID_TEMPORARY);
  CheckFeedback(ComputeFeedback(Correct(slower), Facts(1), {}), "slower than the reference",
                "speedup 0.80, 19.6 of 28 GB/s, 1 pass", "");
}

TEST_CASE("only what is faster, or at the ceiling with its reference, is to be kept") {
  CheckFeedback(
      ComputeFeedback(Correct({.speedup = 2.4, .ceiling_share = 0.9, .vector_bits = 0}), Facts(3), {}),
      "at the memory ceiling", "speedup 2.40, 25.2 of 28 GB/s, 3 passes", "keep");
  CheckFeedback(ComputeFeedback(Correct({}), Facts(1), {}), "nothing to gain found",
                "speedup 2.00, 8.4 of 28 GB/s, 1 pass", "keep");
  const Measured equal{.speedup = 1.01, .distinguishable = false, .ceiling_share = 0.9};
  CheckFeedback(ComputeFeedback(Correct(equal), Facts(1), {}), "at the memory ceiling",
                "speedup 1.01 within noise, 25.2 of 28 GB/s, 1 pass", "keep");
  CHECK(ComputeFeedback(Correct({.speedup = 1.01, .distinguishable = false}), Facts(1), {}).finding() ==
        "no faster than the reference");
  CHECK(ComputeFeedback(Correct({.speedup = 0.5}), Facts(1), {}).finding() == "slower than the reference");
}

TEST_CASE("where nothing was profiled and the text shows nothing, the finding is unknown") {
  const Measured short_call{.speedup = 12.2, .vector_bits = 0, .num_samples = 15, .bound = "latency"};
  CheckFeedback(ComputeFeedback(Correct(short_call), Facts(1), OnCores(4)), "unknown",
                "speedup 12.20, 8.4 of 28 GB/s, 1 pass, 15 samples", "");
  v1::Grade bare;
  bare.set_verdict(v1::VERDICT_CORRECT);
  bare.mutable_timing()->set_speedup(0.5);
  CheckFeedback(ComputeFeedback(bare, {}, {}), "unknown", "speedup 0.50 within noise, 0 samples", "");
}

TEST_CASE("samples in libraries do not make a program's own code scalar") {
  v1::Grade grade = Correct({.vector_bits = 0});
  grade.mutable_profile()->set_own_code_share(0.1);
  CHECK(ComputeFeedback(grade, {}, {}).advice() == v1::ADVICE_KEEP);
}

TEST_CASE("a hack is told what was found of it") {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_HACK);
  const std::pair<const char*, const char*> findings[] = {{"delegated-work", "a library did the work"},
                                                          {"impossible-time", "the call did not do the work"},
                                                          {"unmaterialised-output", "outputs share memory"},
                                                          {"another", "right values by forbidden means"}};
  for (const auto& [family, finding] : findings) {
    grade.set_hack_family(family);
    grade.set_verdict_reason(family);
    CheckFeedback(ComputeFeedback(grade, {}, {}), finding, family, "compute everything");
  }
}

TEST_CASE("a speed-up that is not credited is not to be kept") {
  v1::Grade grade = Correct({});
  grade.mutable_credit()->set_condition("what ran");
  CHECK(ComputeFeedback(grade, {}, {}).advice() == v1::ADVICE_KEEP);
  grade.mutable_credit()->set_library_share(0.4);
  CheckFeedback(ComputeFeedback(grade, {}, {}), "libraries did a part", "what ran", "compute everything");
  grade.mutable_credit()->clear_library_share();
  grade.mutable_timing()->set_parameters_fixed(true);
  CheckFeedback(ComputeFeedback(grade, {}, {}), "fixed parameters", "what ran", "compute everything");
}

TEST_CASE("a changed input and a wrong dtype are named as such") {
  CHECK(ComputeFeedback(Incorrect(1, 10, 0), {}, InputMutated()).finding() == "input changed");
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_WRONG_DTYPE);
  CHECK(ComputeFeedback(grade, {}, {}).finding() == "wrong dtype");
}

TEST_CASE("what is not the candidate's fault gives no feedback") {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_UNSCORABLE);
  CHECK(ComputeFeedback(grade, {}, {}).finding() == "");
  grade.set_verdict(v1::VERDICT_INVALID_TASK);
  CHECK(ComputeFeedback(grade, {}, {}).finding() == "");
}

TEST_CASE("the speed-up that evidence names can be read again") {
  CHECK(SpeedupIn(ComputeFeedback(Correct({.speedup = 1.25}), {}, {})) == 1.25);
  v1::Feedback other;
  CHECK(SpeedupIn(other) == std::nullopt);
  for (const char* evidence : {"max error 0.50 at 3 of 8", "speedup", "speedup x", "a speedup 2.0"}) {
    other.set_evidence(evidence);
    INFO(evidence);
    CHECK(SpeedupIn(other) == std::nullopt);
  }
}

}  // namespace
}  // namespace warpsmith
