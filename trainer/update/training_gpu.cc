#include "trainer/update/training_gpu.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"

namespace warpsmith {

absl::StatusOr<TrainingGpu::Turn> TrainingGpu::Take() {
  if (!lease_.has_value()) return Turn();
  ASSIGN_OR_RETURN(DeviceLease::Held held, lease_->Take(absl::Now() + kGpuWaitMax));
  return Turn(std::move(held));
}

}  // namespace warpsmith
