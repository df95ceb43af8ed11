#include "trainer/update/training_gpu.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"

namespace warpsmith {

absl::StatusOr<std::unique_ptr<TrainingGpu>> TrainingGpu::Open(std::optional<int> index, int num_ranks) {
  if (!index.has_value()) return nullptr;
  if (num_ranks == 1) return Open(*index);
  return absl::UnimplementedError(absl::StrCat("trainer.device is a GPU and WORLD_SIZE is ", num_ranks,
                                               ": one process trains on a GPU; start one, or give cpu"));
}

absl::StatusOr<TrainingGpu::Turn> TrainingGpu::Take() {
  if (!lease_.has_value()) return Turn();
  ASSIGN_OR_RETURN(DeviceLease::Held held, lease_->Take(absl::Now() + kGpuWaitMax));
  return Turn(std::move(held));
}

}  // namespace warpsmith
