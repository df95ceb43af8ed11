#include "reward_service/measure/core_pace.h"

#include <algorithm>
#include <cstddef>

#include "reward_service/measure/statistics.h"

namespace warpsmith {
namespace {

constexpr size_t kMeasurementsMin = 3;
// Of judgements that are remembered: the least of all that ever were would fall for ever, by chance.
constexpr size_t kRemembered = 50;
constexpr size_t kFastestShare = 10;
constexpr double kSharedCoreMax = 1.6;

}  // namespace

void CorePace::Learn(const std::vector<double>& us) {
  if (us.size() < kMeasurementsMin) return;
  const double median_us = Median(us);
  if (median_us <= 0) return;
  last_us_.push_back(median_us);
  if (last_us_.size() > kRemembered) last_us_.pop_front();
}

double CorePace::Slowness(double us) const {
  if (last_us_.empty()) return 1;
  std::vector<double> sorted(last_us_.begin(), last_us_.end());
  const auto fastest = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / kFastestShare);
  std::nth_element(sorted.begin(), fastest, sorted.end());
  return std::clamp(us / *fastest, 1.0, kSharedCoreMax);
}

}  // namespace warpsmith
