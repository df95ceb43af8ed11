// Opens GPUs in builds with CUDA.
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/cuda_device.h"
#include "trainer/update/training_gpu.h"

namespace warpsmith {

absl::StatusOr<std::unique_ptr<TrainingGpu>> TrainingGpu::Open(int index) {
  ASSIGN_OR_RETURN(CudaDevice device, UseCudaDevice(index, "trainer.device"));
  absl::StatusOr<DeviceLease> lease = DeviceLease::Open(device.uuid);
  if (!lease.ok()) {
    LogWarning(
        absl::StrCat("the trainer takes no turns on GPU ", index,
                     ", so what a referee times there meanwhile is wrong: ", lease.status().message()));
  }
  return std::make_unique<TrainingGpu>(index, std::move(device.name),
                                       lease.ok() ? std::optional(*std::move(lease)) : std::nullopt);
}

}  // namespace warpsmith
