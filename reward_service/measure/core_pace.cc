#include "reward_service/measure/core_pace.h"

#include <algorithm>

#include "reward_service/measure/statistics.h"

namespace warpsmith {
namespace {

constexpr size_t kMeasurementsMin = 3;

}  // namespace

void CorePace::Learn(const std::vector<double>& us) {
  if (us.size() < kMeasurementsMin) return;
  if (const double median_us = Median(us); median_us > 0) least_us_ = std::min(least_us_, median_us);
}

// Nothing is below infinity times one.
double CorePace::Slowness(double us) const { return std::max(1.0, us / least_us_); }

}  // namespace warpsmith
