#include "trainer/evaluation/evaluation_statistics.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/unit/trainer/groups.h"

namespace warpsmith {
namespace {

Grade Correct(double speedup, double low, double reward) {
  Grade grade = GradeOf(reward);
  grade.speedup = speedup;
  grade.speedup_low = low;
  return grade;
}

Grade Failed(Verdict verdict, bool compiled) {
  Grade grade = GradeOf(0.0);
  grade.verdict = verdict;
  grade.compiled = compiled;
  return grade;
}

TransitionGroup GroupWith(const std::string& id, const std::vector<Grade>& grades) {
  TransitionGroup group;
  group.task.id = id;
  for (const Grade& grade : grades) group.transitions.emplace_back().grade = grade;
  return group;
}

}  // namespace

TEST_CASE("rates, geometric mean and reward by hand") {
  const std::vector<TransitionGroup> groups = {
      GroupWith("a", {Correct(4.0, 3.8, 3.0), Correct(1.0, 0.99, 1.3)}),
      GroupWith("b", {Failed(Verdict::kCompileError, false), Failed(Verdict::kHack, true)}),
      GroupWith("c", {Grade{}})};
  const EvaluationStatistics statistics = ComputeEvaluationStatistics(groups, 1);
  CHECK(statistics.num_answers == 5);
  CHECK(statistics.num_unscored == 1);
  CHECK(statistics.num_tasks == 2);
  CHECK(statistics.compile_rate.value == Approx(0.75));
  CHECK(statistics.correct_rate.value == Approx(0.5));
  CHECK(statistics.fast_1.value == Approx(0.25));
  CHECK(statistics.geomean_speedup.value == Approx(2.0));
  CHECK(statistics.mean_reward.value == Approx(4.3 / 4));
  CHECK(statistics.hack_rate.value == Approx(0.25));
}

TEST_CASE("the interval is over tasks: answers to one task add no certainty") {
  const Grade right = Correct(2, 1.9, 2), wrong = Failed(Verdict::kIncorrect, true);
  const auto narrow =
      ComputeEvaluationStatistics({GroupWith("a", {right, wrong}), GroupWith("b", {right, wrong})}, 1);
  CHECK(narrow.correct_rate.low == Approx(0.5));  // every resample of these two tasks is half right
  CHECK(narrow.correct_rate.high == Approx(0.5));
  const auto wide =
      ComputeEvaluationStatistics({GroupWith("a", {right, right}), GroupWith("b", {wrong, wrong})}, 1);
  CHECK(wide.correct_rate.low == Approx(0.0));
  CHECK(wide.correct_rate.high == Approx(1.0));
}

TEST_CASE("both skills of a task are resampled together") {
  const Grade right = Correct(2, 1.9, 2), wrong = Failed(Verdict::kIncorrect, true);
  const auto statistics =
      ComputeEvaluationStatistics({GroupWith("a", {right}), GroupWith("a#0123", {wrong})}, 1);
  CHECK(statistics.num_tasks == 1);
  CHECK(statistics.correct_rate.low == Approx(0.5));
}

TEST_CASE("without any scored answer no figure exists") {
  const auto statistics = ComputeEvaluationStatistics({}, 1);
  CHECK(std::isnan(statistics.mean_reward.value));
  CHECK(statistics.num_tasks == 0);
}

}  // namespace warpsmith
