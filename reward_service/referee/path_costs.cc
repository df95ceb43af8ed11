#include "reward_service/referee/path_costs.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"
#include "reward_service/measure/statistics.h"

namespace warpsmith {
namespace {

constexpr double kLeastUs = 1e-3;  // the clock's unit
constexpr double kForgivenUs = 8;
constexpr double kForgivenShare = 0.02;
constexpr double kForgivenUsMax = 30;

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

double WorkAfter(const BatchTime& batch, const EmptyCall& empty) {
  const bool is_proven_idle = empty.after_us > 0;
  const double forgiven_us =
      is_proven_idle ? std::clamp(kForgivenShare * batch.us, kForgivenUs, kForgivenUsMax) : 0;
  return std::max(0.0, batch.after_us - empty.after_us - forgiven_us);
}

// What each of so many calls itself took. Below what empty calls scatter, or the clock's unit, nothing is known.
double WithoutPath(const BatchTime& batch, const EmptyCall& path) {
  const double known_us = std::max({SingleWithoutPath(batch, path), path.scatter_us, kLeastUs});
  return known_us / static_cast<double>(batch.num_calls);
}

}  // namespace

double WithWorkAfter(const BatchTime& batch, const EmptyCall& empty) {
  return batch.us + WorkAfter(batch, empty);
}

double SingleWithoutPath(const BatchTime& batch, const EmptyCall& path) {
  // An answer that comes sooner than an empty call's saves nothing: the path would be taken off work that is behind it.
  return std::max(0.0, batch.us - path.us) + WorkAfter(batch, path);
}

absl::Status PathCosts::MeasureCall() {
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

double PathCosts::BetweenCalls(const BatchTime& batch, const RoundPath& round) const {
  if (batch.num_calls == 1 || !options_.takes_between_off) return 0;
  const double between_us = Of(batch.num_calls, round).reference.us - Of(1, round).reference.us;
  return std::max(0.0, between_us - batch.waited_us);  // what the process waited for the device hid as much
}

EmptyCall PathCosts::OfReference(const BatchTime& batch, const RoundPath& round) const {
  EmptyCall path = Of(batch.num_calls, round).reference;
  if (batch.num_calls == 1) return path;
  path.us = std::min(path.us, Of(1, round).reference.us + BetweenCalls(batch, round));
  return path;
}

EmptyCall PathCosts::OfCandidate(size_t num_calls, const RoundPath& round) const {
  EmptyCall path = Of(num_calls, round).candidate;
  if (num_calls > 1 && !options_.takes_between_off) path.us = std::min(path.us, Of(1, round).candidate.us);
  return path;
}

double PathCosts::UsOfReference(const BatchTime& batch, const RoundPath& round) const {
  if (batch.steady_us <= 0 || batch.num_calls == 1) return WithoutPath(batch, OfReference(batch, round));
  const double between_us = BetweenCalls(batch, round) / static_cast<double>(batch.num_calls - 1);
  return std::max(batch.steady_us - between_us, kLeastUs);
}

double PathCosts::UsOfCandidate(const BatchTime& batch, const RoundPath& round) const {
  return WithoutPath(batch, OfCandidate(batch.num_calls, round));
}

}  // namespace warpsmith
