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
  ASSIGN_OR_RETURN(alone_us_, Measure());
  return absl::OkStatus();
}

absl::StatusOr<double> Occupation::Measure() {
  std::array<double, kMeasurements> us{};
  for (double& now_us : us) {
    RETURN_IF_ERROR(Begin());
    ASSIGN_OR_RETURN(now_us, Await());
  }
  std::nth_element(us.begin(), us.begin() + kMeasurements / 2, us.end());
  return us[kMeasurements / 2];
}

absl::Status Occupation::Begin() {
  begin_ = absl::Now();
  for (int i = 0; i < num_fillings_; ++i) RETURN_IF_ERROR(filler_->Fill(0, 0, filler_->num_bytes()));
  return absl::OkStatus();
}

absl::StatusOr<double> Occupation::Await() {
  RETURN_IF_ERROR(context_->Synchronise());
  return std::max(0.0, absl::ToDoubleMicroseconds(absl::Now() - begin_) - alone_us_);
}

}  // namespace warpsmith
