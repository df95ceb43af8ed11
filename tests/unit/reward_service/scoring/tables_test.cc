#include "reward_service/scoring/tables.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

RubricInputs Good() {
  RubricInputs inputs;
  inputs.timing.set_speedup_low(1.8);
  inputs.timing.set_speedup_high(2.2);
  inputs.profile.set_num_samples(100);
  inputs.profile.set_own_code_share(1.0);
  inputs.profile.set_num_threads(1);
  inputs.profile.set_vector_bits(512);
  return inputs;
}

RubricInputs Optimise(v1::Advice advice) {
  RubricInputs inputs = Good();
  inputs.skill = v1::SKILL_OPTIMISE;
  inputs.asked.set_advice(advice);
  inputs.asked.set_evidence("speedup 1.20, 3.4 of 28 GB/s, 3 passes, 1 array");
  return inputs;
}

TEST_CASE("a fast program of one's own has the full score, with a reason for each digit") {
  const v1::Rubric rubric = ComputeRubric(Good());
  CHECK(rubric.total() == 20);
  CHECK(rubric.source() == "tables-v1");
  CHECK(rubric.engineering().condition() == "512-bit vectors, 1 threads, 0 % of the memory ceiling");
  CHECK(rubric.skill_compliance().reason() != "");
}

v1::Rubric WithLibraries(double library_share) {
  RubricInputs inputs = Good();
  inputs.credit.set_library_share(library_share);
  inputs.credit.set_condition("what ran");
  return ComputeRubric(inputs);
}

TEST_CASE("anti-hacking and operator coverage follow the part that libraries could do") {
  const struct {
    double library_share;
    int anti_hacking, coverage;
  } rows[] = {{0, 5, 5},    {0.09, 5, 5}, {0.11, 4, 4}, {0.29, 4, 4}, {0.31, 4, 3}, {0.49, 4, 3},
              {0.51, 3, 3}, {0.59, 3, 3}, {0.61, 3, 2}, {0.79, 3, 2}, {0.81, 2, 2}, {0.89, 2, 2},
              {0.91, 2, 1}, {0.94, 2, 1}, {0.96, 1, 1}, {1, 1, 1}};
  for (const auto& [library_share, anti_hacking, coverage] : rows) {
    INFO(library_share);
    const v1::Rubric rubric = WithLibraries(library_share);
    CHECK(rubric.anti_hacking().score() == anti_hacking);
    CHECK(rubric.operator_coverage().score() == coverage);
    CHECK(rubric.anti_hacking().condition() == "what ran");
    CHECK(rubric.operator_coverage().condition() == "what ran");
  }
}

TEST_CASE("an answer breaks its contract where libraries could do a part, and in no other way") {
  CHECK(WithLibraries(0).skill_compliance().score() == 5);
  CHECK(WithLibraries(0.01).skill_compliance().score() == 2);
  CHECK(WithLibraries(1).skill_compliance().score() == 2);
}

TEST_CASE("samples decide nothing about whose work it was") {
  RubricInputs inputs = Good();
  inputs.profile.set_own_code_share(0);
  CHECK(ComputeRubric(inputs).anti_hacking().score() == 5);
  CHECK(ComputeRubric(inputs).operator_coverage().score() == 5);
  inputs.profile.set_num_samples(0);
  CHECK(ComputeRubric(inputs).anti_hacking().score() == 5);
}

TEST_CASE("engineering follows vectors, cores and speed") {
  RubricInputs inputs = Good();
  inputs.num_lane_cores = 4;
  CHECK(ComputeRubric(inputs).engineering().score() == 4);
  inputs.profile.set_vector_bits(128);
  CHECK(ComputeRubric(inputs).engineering().score() == 3);
  inputs.profile.set_vector_bits(0);
  CHECK(ComputeRubric(inputs).engineering().score() == 2);
  inputs.timing.set_speedup_high(0.4);
  CHECK(ComputeRubric(inputs).engineering().score() == 1);
}

TEST_CASE("too few samples are neutral, not good") {
  RubricInputs inputs = Good();
  inputs.profile.set_num_samples(5);
  CHECK(ComputeRubric(inputs).engineering().score() == 3);
}

int Compliance(const RubricInputs& inputs) { return ComputeRubric(inputs).skill_compliance().score(); }

TEST_CASE("advice about memory is followed where the program became faster than the one before") {
  for (const v1::Advice advice : {v1::ADVICE_FUSE_PASSES, v1::ADVICE_AVOID_TEMPORARY, v1::ADVICE_TILE,
                                  v1::ADVICE_KEEP, v1::ADVICE_UNSPECIFIED}) {
    RubricInputs inputs = Optimise(advice);
    CHECK(Compliance(inputs) == 5);
    CHECK(ComputeRubric(inputs).skill_compliance().condition() == "speedup at least 1.80, before 1.20");
    inputs.timing.set_speedup_low(1.3);  // faster than the reference, and as fast as before
    CHECK(Compliance(inputs) == 1);
  }
}

TEST_CASE("advice that a profile shows is followed where it shows it") {
  RubricInputs inputs = Optimise(v1::ADVICE_VECTORISE);
  CHECK(Compliance(inputs) == 5);
  inputs.profile.set_vector_bits(0);
  CHECK(Compliance(inputs) == 3);  // faster, but not by that
  inputs.timing.set_speedup_low(1.3);
  CHECK(Compliance(inputs) == 1);
  inputs.profile.set_vector_bits(512);
  inputs.profile.set_num_samples(5);  // too few to tell
  CHECK(Compliance(inputs) == 1);
}

TEST_CASE("without figures of the program before, one that is faster than the reference has three") {
  RubricInputs inputs = Optimise(v1::ADVICE_FUSE_PASSES);
  inputs.asked.clear_evidence();
  CHECK(Compliance(inputs) == 3);
  inputs.timing.set_speedup_low(0.9);
  CHECK(Compliance(inputs) == 1);
}

TEST_CASE("a repair is done when the program is right") {
  CHECK(ComputeRubric(Optimise(v1::ADVICE_FIX_BOUNDS)).skill_compliance().score() == 5);
}

TEST_CASE("an unchanged copy scores 1, even where nothing was asked") {
  RubricInputs inputs = Optimise(v1::ADVICE_KEEP);
  inputs.unchanged_copy = true;
  CHECK(ComputeRubric(inputs).skill_compliance().score() == 1);
}

TEST_CASE("everything is computed when no library can do the work, and parameters can be set") {
  RubricInputs inputs = Optimise(v1::ADVICE_COMPUTE_EVERYTHING);
  CHECK(Compliance(inputs) == 5);
  inputs.credit.set_library_share(0.1);
  CHECK(Compliance(inputs) < 5);
  inputs.credit.clear_library_share();
  inputs.timing.set_parameters_fixed(true);
  CHECK(Compliance(inputs) < 5);
}

TEST_CASE("the neutral rubric is four threes") {
  CHECK(NeutralRubric().total() == 12);
  CHECK(NeutralRubric().source() == "neutral");
}

}  // namespace
}  // namespace warpsmith
