#include "reward_service/grading/wire.h"

#include <set>

#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"

namespace warpsmith {
namespace {

TEST_CASE("every outcome has a verdict of its own, and none is the service's failure") {
  std::set<v1::Verdict> verdicts;
  for (int outcome = 0; outcome <= static_cast<int>(Outcome::kInvalidTask); ++outcome) {
    verdicts.insert(ToVerdict(static_cast<Outcome>(outcome)));
  }
  CHECK(verdicts.size() == static_cast<size_t>(Outcome::kInvalidTask) + 1);
  CHECK(verdicts.count(v1::VERDICT_UNSCORABLE) == 0);
  CHECK(verdicts.count(v1::VERDICT_UNSPECIFIED) == 0);
}

TEST_CASE("a judgement's numbers arrive in the grade") {
  Judgement judgement = TwiceAsFast();
  judgement.correctness.num_wrong = 7;
  judgement.correctness.max_absolute_error = 0.5;
  judgement.seconds = {.lane_wait = 0.1, .oracle = 0.2, .verify = 0.3, .time = 0.4, .profile = 0.5};
  judgement.guard_touched = true;
  Measurement measurement;
  measurement.grade.mutable_cost()->set_lane_wait_seconds(1.0);
  FillFromJudgement(judgement, &measurement);
  const v1::Grade& grade = measurement.grade;
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.correctness().num_wrong() == 7);
  CHECK(grade.correctness().max_absolute_error() == 0.5);
  CHECK(grade.timing().speedup_low() == 1.9);
  CHECK(grade.timing().distinguishable());
  CHECK(grade.profile().vector_bits() == 512);
  CHECK(grade.cost().lane_wait_seconds() == Approx(1.1));  // the queue's and the referee's
  CHECK(grade.cost().profile_seconds() == 0.5);
  CHECK(measurement.defects.out_of_bounds);
}

TEST_CASE("a candidate that was not timed has neither timing nor profile") {
  Judgement judgement;
  judgement.outcome = Outcome::kIncorrect;
  Measurement measurement;
  FillFromJudgement(judgement, &measurement);
  CHECK_FALSE(measurement.grade.has_timing());
  CHECK_FALSE(measurement.grade.has_profile());
}

}  // namespace
}  // namespace warpsmith
