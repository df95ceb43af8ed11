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
  const InPhase phase(Phase::kPath);
  if (options_.cold) {
    ASSIGN_OR_RETURN(const EmptyCall memory, device_->MeasureMemory());
    if (!memory_) memory_ = memory;
    KeepLeast(memory, &*memory_);
    if (least_) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Overhead now, device_->MeasureOverhead());
  if (!least_) least_ = now;
  KeepLeast(now.reference, &least_->reference);
  KeepLeast(now.candidate, &least_->candidate);
  return absl::OkStatus();
}

absl::Status PathCosts::MeasureBatch(size_t num_calls, RoundPath* round) {
  if (!options_.cold) return absl::OkStatus();
  const InPhase phase(Phase::kPath);
  ASSIGN_OR_RETURN(const Overhead now, device_->MeasureColdOverhead(num_calls));
  cold_[num_calls].push_back(now);
  if (round != nullptr) (*round)[num_calls] = now;
  return absl::OkStatus();
}

Overhead PathCosts::Of(size_t num_calls, const RoundPath& round) const {
  const auto cold = cold_.find(num_calls);
  Overhead path = *least_;
  if (cold != cold_.end()) {
    path = {MedianOf(cold->second, &Overhead::reference), MedianOf(cold->second, &Overhead::candidate)};
  }
  if (const auto now = round.find(num_calls); now != round.end()) {
    path.reference.us = now->second.reference.us;
    path.candidate.us = now->second.candidate.us;
  }
  if (!memory_) return path;
  for (EmptyCall* side : {&path.reference, &path.candidate}) {
    side->us += memory_->us;
    side->scatter_us = std::max(side->scatter_us, memory_->scatter_us);
    side->after_us += memory_->after_us;
  }
  return path;
}

EmptyCall PathCosts::OfReference(const BatchTime& batch, const RoundPath& round) const {
  EmptyCall path = Of(batch.num_calls, round).reference;
  if (batch.num_calls == 1) return path;
  const double between_us = std::max(0.0, path.us - Of(1, round).reference.us);
  path.us -= options_.takes_between_off ? std::min(between_us, batch.waited_us) : between_us;
  return path;
}

EmptyCall PathCosts::OfCandidate(size_t num_calls, const RoundPath& round) const {
  EmptyCall path = Of(num_calls, round).candidate;
  if (num_calls > 1 && !options_.takes_between_off) path.us = std::min(path.us, Of(1, round).candidate.us);
  return path;
}

}  // namespace warpsmith
