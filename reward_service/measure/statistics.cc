#include "reward_service/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/confidence.h"
#include "core/base/counter_random.h"

namespace warpsmith {
namespace {

constexpr int kResamples = 200;
constexpr uint64_t kBootstrapKey = 0x5761727073;
constexpr double kNearOne = 0.03;
constexpr double kDeviationOfScatter = 1.4826;  // of a normal distribution
constexpr int kPriorFreedom = 2;

Interval BootstrapInterval(const std::vector<std::vector<double>>& ratios_by_instance) {
  uint64_t draw = 0;
  const auto pick = [&draw](size_t n) {
    return static_cast<size_t>(UniformDouble(kBootstrapKey, draw++) * static_cast<double>(n));
  };
  std::vector<double> medians;
  for (int resample = 0; resample < kResamples; ++resample) {
    std::vector<double> drawn;
    for (size_t i = 0; i < ratios_by_instance.size(); ++i) {
      const auto& ratios = ratios_by_instance[pick(ratios_by_instance.size())];
      for (size_t k = 0; k < ratios.size(); ++k) drawn.push_back(ratios[pick(ratios.size())]);
    }
    medians.push_back(Median(std::move(drawn)));
  }
  std::sort(medians.begin(), medians.end());
  const auto tail = static_cast<size_t>(std::lround(kResamples * TailShare()));
  return {0, medians[tail], medians[kResamples - 1 - tail]};
}

// How far the logarithm of the median may be off, by processes that each have a median.
double StudentError(const std::vector<std::vector<double>>& ratios_by_instance) {
  std::vector<double> all, medians;
  for (const auto& ratios : ratios_by_instance) {
    std::vector<double> logarithms;
    for (const double ratio : ratios) logarithms.push_back(std::log(ratio));
    all.insert(all.end(), logarithms.begin(), logarithms.end());
    if (!logarithms.empty()) medians.push_back(Median(std::move(logarithms)));
  }
  const auto num = static_cast<double>(medians.size());
  const double mean = std::accumulate(medians.begin(), medians.end(), 0.0) / num;
  double squares = 0;
  for (const double median : medians) squares += (median - mean) * (median - mean);
  const double deviation = kDeviationOfScatter * Scatter(all);
  squares += kPriorFreedom * deviation * deviation * num / static_cast<double>(all.size());
  const int freedom = kPriorFreedom + static_cast<int>(medians.size()) - 1;
  return StudentQuantile(freedom) * std::sqrt(squares / freedom / num);
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double Scatter(std::vector<double> values) {
  const double middle = Median(values);
  for (double& value : values) value = std::abs(value - middle);
  return Median(std::move(values));
}

double MedianError(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double half = static_cast<double>(values.size()) / 2;
  const double reach = kNormalQuantile * std::sqrt(half / 2);
  const auto low = static_cast<size_t>(std::max(0.0, std::floor(half - reach) - 1));
  return (values[values.size() - 1 - low] - values[low]) / 2;
}

double StudentQuantile(int freedom) {
  const double z = kNormalQuantile, z2 = z * z, n = freedom;
  const double first = z * (z2 + 1) / 4;
  const double second = z * ((5 * z2 + 16) * z2 + 3) / 96;
  const double third = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
  const double fourth = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
  return z + (first + (second + (third + fourth / n) / n) / n) / n;
}

Interval RatioInterval(const std::vector<std::vector<double>>& ratios_by_instance) {
  std::vector<double> all;
  for (const auto& ratios : ratios_by_instance) all.insert(all.end(), ratios.begin(), ratios.end());
  if (all.empty()) return {};
  Interval interval = BootstrapInterval(ratios_by_instance);
  interval.middle = Median(std::move(all));
  const double factor = std::exp(StudentError(ratios_by_instance));
  interval.low = std::min(interval.low, interval.middle / factor);
  interval.high = std::max(interval.high, interval.middle * factor);
  return interval;
}

v1::TimingSide Summarise(const std::vector<double>& microseconds, int num_instances) {
  v1::TimingSide side;
  side.set_num_instances(num_instances);
  side.set_num_calls(static_cast<int>(microseconds.size()));
  if (microseconds.empty()) return side;
  const double n = static_cast<double>(microseconds.size());
  const double mean = std::accumulate(microseconds.begin(), microseconds.end(), 0.0) / n;
  double squares = 0;
  for (const double value : microseconds) squares += (value - mean) * (value - mean);
  side.set_median_us(Median(microseconds));
  side.set_mean_us(mean);
  side.set_standard_deviation_us(n > 1 ? std::sqrt(squares / (n - 1)) : 0);
  return side;
}

double ReferencePace::Slowness(double median_us) {
  least_us_ = std::min(least_us_, median_us);
  return median_us / least_us_;
}

bool IsNearOne(double ratio) { return ratio >= 1 - kNearOne && ratio <= 1 + kNearOne; }

bool IsDistinguishable(const Interval& interval) {
  return interval.low > 1 + kNearOne || interval.high < 1 - kNearOne;
}

}  // namespace warpsmith
