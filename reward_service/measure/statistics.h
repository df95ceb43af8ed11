// Medians, and how well a ratio of two timings is known.
#ifndef WARPSMITH_REWARD_SERVICE_MEASURE_STATISTICS_H_
#define WARPSMITH_REWARD_SERVICE_MEASURE_STATISTICS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// The middle value, or the mean of the two middle ones; 0 for none.
double Median(std::vector<double> values);

// The median distance from the median; 0 for none.
double Scatter(std::vector<double> values);

// How far the median of such values may lie from theirs, with 95 %: half of its interval by order statistics, whatever
// their distribution (W. J. Conover, Practical Nonparametric Statistics, 3.2). Of few values half of their range.
double MedianError(std::vector<double> values);

struct Interval {
  double middle = 0;
  double low = 0;
  double high = 0;

  // Width over middle, or over 1 where that is more: whoever is slower than its reference need not be known
  // more exactly than who is as fast. Large when nothing is known.
  double relative_width() const { return middle > 0 ? (high - low) / std::max(1.0, middle) : 1e9; }
};

// Median of ratios and its 95 % interval, deterministic: the wider of two.
// A bootstrap in two levels: process instances first, then the rounds within each, for rounds of one process resemble
// each other (memory layout). Of two or three processes it draws the same ones again and again, and is too narrow.
// And Student's interval over the processes' medians, of logarithms. That their variance is known badly of so few is
// made good by what rounds scatter, which counts like kPriorFreedom more processes.
Interval RatioInterval(const std::vector<std::vector<double>>& ratios_by_instance);

// How many standard errors lie on either side of an estimate in a 95 % interval, where the error is known with so many
// degrees of freedom, at least 2: M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions, 26.7.5.
double StudentQuantile(int freedom);

// Median, mean and deviation of microseconds.
v1::TimingSide Summarise(const std::vector<double>& microseconds, int num_instances);

// How fast a reference has been seen to run. Where memory of a process is missing, vectorised functions run
// up to 20 times slower until something brings it back (core/base/touch_constants.h), and a candidate would
// get the credit.
class ReferencePace {
 public:
  // `median_us` divided by the least so far, itself included.
  double Slowness(double median_us);

 private:
  double least_us_ = std::numeric_limits<double>::infinity();
};

// Whether a ratio lies within [0.97, 1.03]: so near 1 it may be noise.
bool IsNearOne(double ratio);

// Whether an interval lies outside [0.97, 1.03] altogether.
bool IsDistinguishable(const Interval& interval);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_MEASURE_STATISTICS_H_
