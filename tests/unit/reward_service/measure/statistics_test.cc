#include "reward_service/measure/statistics.h"

#include <cmath>
#include <random>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("the median of an even number of values is the mean of the middle two") {
  CHECK(Median({}) == 0);
  CHECK(Median({3}) == 3);
  CHECK(Median({4, 1, 3, 2}) == 2.5);
  CHECK(Median({5, 1, 9}) == 5);
}

TEST_CASE("the scatter is the median distance from the median") {
  CHECK(Scatter({}) == 0);
  CHECK(Scatter({7}) == 0);
  CHECK(Scatter({1, 2, 4, 8, 100}) == 3);
}

TEST_CASE("the median of many values is known better, by their order alone") {
  CHECK(MedianError({}) == 0);
  CHECK(MedianError({7}) == 0);
  CHECK(MedianError({1, 2, 3, 4, 9}) == 4);  // of few nothing but their range is known
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(i);
  CHECK(MedianError(values) == Approx(10).margin(1));  // the table of 95 % has the 40th and the 61st of 100
  values.front() = -1e9;
  CHECK(MedianError(values) == Approx(10).margin(1));
}

TEST_CASE("equal ratios have an interval of no width") {
  const Interval interval = RatioInterval({{2, 2, 2}, {2, 2}});
  CHECK(interval.middle == 2);
  CHECK(interval.low == 2);
  CHECK(interval.high == 2);
  CHECK(interval.relative_width() == 0);
}

TEST_CASE("instances that disagree widen the interval more than rounds that do") {
  const Interval between = RatioInterval({{1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}});
  const Interval within = RatioInterval({{1, 2, 2, 3}, {1, 2, 2, 3}, {1, 2, 2, 3}});
  CHECK(between.relative_width() > within.relative_width());
}

// Of the tables: 3.182, 2.571, 2.228, 1.984.
TEST_CASE("the fewer degrees of freedom, the more standard errors") {
  CHECK(StudentQuantile(2) == Approx(4.303).epsilon(0.01));
  CHECK(StudentQuantile(3) == Approx(3.182).epsilon(0.003));
  CHECK(StudentQuantile(5) == Approx(2.571).epsilon(0.003));
  CHECK(StudentQuantile(10) == Approx(2.228).epsilon(0.001));
  CHECK(StudentQuantile(100) == Approx(1.984).epsilon(0.001));
}

// Processes that differ by chance, with rounds that scatter as much: in how many of 400 judgements with so many
// processes the interval holds the truth.
int NumHeld(int num_processes, double between, double within) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  int num_held = 0;
  for (int judgement = 0; judgement < 400; ++judgement) {
    std::vector<std::vector<double>> ratios;
    for (int process = 0; process < num_processes; ++process) {
      const double own = between * normal(random);
      ratios.emplace_back();
      for (int round = 0; round < 3; ++round)
        ratios.back().push_back(3 * std::exp(own + within * normal(random)));
    }
    const Interval interval = RatioInterval(ratios);
    num_held += interval.low <= 3 && 3 <= interval.high ? 1 : 0;
  }
  return num_held;
}

TEST_CASE("an interval of few processes holds the truth about as often as it says") {
  CHECK(NumHeld(2, 0.01, 0.02) >= 360);
  CHECK(NumHeld(4, 0.01, 0.02) >= 360);
  CHECK(NumHeld(4, 0.02, 0.02) >= 355);
  CHECK(NumHeld(9, 0.02, 0.02) >= 365);
}

TEST_CASE("the interval repeats to the bit and holds the median") {
  const std::vector<std::vector<double>> ratios = {{1.1, 1.3, 1.2}, {1.4, 1.15, 1.25}, {1.22, 1.18, 1.3}};
  const Interval first = RatioInterval(ratios);
  const Interval second = RatioInterval(ratios);
  CHECK(first.low == second.low);
  CHECK(first.low <= first.middle);
  CHECK(first.middle <= first.high);
}

TEST_CASE("a width is relative to the ratio, but of a slower program to one") {
  CHECK(Interval{4, 3.9, 4.1}.relative_width() == Approx(0.05));
  CHECK(Interval{0.1, 0.09, 0.11}.relative_width() == Approx(0.02));
}

TEST_CASE("nothing measured is nothing known") { CHECK(RatioInterval({}).relative_width() > 1000); }

TEST_CASE("an interval that meets 0.97 to 1.03 is not distinguishable from one") {
  CHECK(IsDistinguishable({1.2, 1.04, 1.3}));
  CHECK(IsDistinguishable({0.5, 0.4, 0.96}));
  CHECK_FALSE(IsDistinguishable({1.1, 1.02, 1.2}));
  CHECK_FALSE(IsDistinguishable({0.95, 0.9, 0.98}));
  CHECK_FALSE(IsDistinguishable({1.0, 0.5, 2.0}));
}

TEST_CASE("a ratio is near one up to where an interval is told from it") {
  CHECK(IsNearOne(0.97));
  CHECK(IsNearOne(1.03));
  CHECK_FALSE(IsNearOne(0.969));
  CHECK_FALSE(IsNearOne(1.031));
}

TEST_CASE("a reference is slow beside the fastest that was seen of it, never beside nothing") {
  ReferencePace pace;
  CHECK(pace.Slowness(5000) == 1);
  CHECK(pace.Slowness(1000) == 1);
  CHECK(pace.Slowness(1900) == Approx(1.9));
  CHECK(pace.Slowness(5000) == 5);
  CHECK(pace.Slowness(1000) == 1);
}

TEST_CASE("a side's summary has median, mean and sample deviation") {
  const v1::TimingSide side = Summarise({1, 2, 3, 6}, 2);
  CHECK(side.median_us() == 2.5);
  CHECK(side.mean_us() == 3);
  CHECK(side.standard_deviation_us() == Approx(2.1602).epsilon(1e-3));
  CHECK(side.num_calls() == 4);
  CHECK(side.num_instances() == 2);
}

}  // namespace
}  // namespace warpsmith
