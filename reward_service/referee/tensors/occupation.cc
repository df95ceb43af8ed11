#include "reward_service/referee/tensors/occupation.h"

#include <algorithm>
#include <array>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr double kWantedUs = 400;
constexpr double kFillingsMax = 64;
constexpr size_t kMeasurements = 5;

}  // namespace

absl::Status Occupation::Learn() {
  ASSIGN_OR_RETURN(const double one_us, Measure());
  num_fillings_ = static_cast<int>(std::clamp(kWantedUs / std::max(one_us, 1.0), 1.0, kFillingsMax));
  ASSIGN_OR_RETURN(const double alone_us, Measure());
  last_us_.fill(alone_us);
  return absl::OkStatus();
}

absl::StatusOr<double> Occupation::Measure() {
  std::array<double, kMeasurements> us{};
  for (double& now_us : us) {
    RETURN_IF_ERROR(Begin());
    ASSIGN_OR_RETURN(now_us, Take());
  }
  std::nth_element(us.begin(), us.begin() + kMeasurements / 2, us.end());
  return us[kMeasurements / 2];
}

absl::Status Occupation::Begin() {
  begin_ = absl::Now();
  for (int i = 0; i < num_fillings_; ++i) RETURN_IF_ERROR(filler_->Fill(0, 0, filler_->num_bytes()));
  return absl::OkStatus();
}

absl::StatusOr<double> Occupation::Take() {
  RETURN_IF_ERROR(context_->Synchronise());
  return absl::ToDoubleMicroseconds(absl::Now() - begin_);
}

absl::StatusOr<double> Occupation::Await() {
  const double shortest_us = *std::min_element(last_us_.begin(), last_us_.end());
  ASSIGN_OR_RETURN(const double us, Take());
  last_us_[next_++ % last_us_.size()] = us;
  return std::max(0.0, us - shortest_us);
}

}  // namespace warpsmith
