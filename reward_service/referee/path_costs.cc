#include "reward_service/referee/path_costs.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"
#include "reward_service/measure/statistics.h"
#include "reward_service/referee/tensors/phase_clock.h"

namespace warpsmith {
namespace {

// Both clocks apart: what disturbed one of them says nothing of the other.
void KeepLeast(const EmptyCall& now, EmptyCall* least) {
  if (now.us < least->us) {
    least->us = now.us;
    least->scatter_us = now.scatter_us;
  }
  least->after_us = std::min(least->after_us, now.after_us);
}

// Medians of what was measured once each.
EmptyCall MedianOf(const std::vector<Overhead>& measured, EmptyCall Overhead::*side) {
  std::vector<double> us, after_us;
  for (const Overhead& one : measured) {
    us.push_back((one.*side).us);
    after_us.push_back((one.*side).after_us);
  }
  return {Median(us), Scatter(us), Median(std::move(after_us))};
}

}  // namespace

absl::Status PathCosts::MeasureCall() {
  if (options_.cold && least_) return absl::OkStatus();
  const InPhase phase(Phase::kPath);
  ASSIGN_OR_RETURN(const Overhead now, device_->MeasureOverhead());
  if (!least_) least_ = now;
  KeepLeast(now.reference, &least_->reference);
  KeepLeast(now.candidate, &least_->candidate);
  return absl::OkStatus();
}

absl::Status PathCosts::MeasureBatch(size_t num_calls) {
  if (!options_.cold) return absl::OkStatus();
  const InPhase phase(Phase::kPath);
  ASSIGN_OR_RETURN(cold_[num_calls].emplace_back(), device_->MeasureColdOverhead(num_calls));
  return absl::OkStatus();
}

Overhead PathCosts::Of(size_t num_calls) const {
  const auto cold = cold_.find(num_calls);
  if (cold == cold_.end()) return *least_;
  return {MedianOf(cold->second, &Overhead::reference), MedianOf(cold->second, &Overhead::candidate)};
}

EmptyCall PathCosts::OfReference(const BatchTime& batch) const {
  EmptyCall path = Of(batch.num_calls).reference;
  if (batch.num_calls == 1) return path;
  const double between_us = std::max(0.0, path.us - Of(1).reference.us);
  path.us -= options_.takes_between_off ? std::min(between_us, batch.waited_us) : between_us;
  return path;
}

EmptyCall PathCosts::OfCandidate(size_t num_calls) const {
  EmptyCall path = Of(num_calls).candidate;
  if (num_calls > 1 && !options_.takes_between_off) path.us = std::min(path.us, Of(1).candidate.us);
  return path;
}

}  // namespace warpsmith
