// Opens GPUs in builds with CUDA.
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/cuda_device.h"
#include "core/model/training/cuda_trainer.h"
#include "core/model/training/flash_attention_cuda.h"
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
  return std::make_unique<TrainingGpu>(Facts{.index = index,
                                             .name = std::move(device.name),
                                             .peak_flops = device.peak_flops,
                                             .total_memory = device.total_memory},
                                       lease.ok() ? std::optional(*std::move(lease)) : std::nullopt);
}

absl::StatusOr<int64_t> TrainingGpu::FreeMemory() const { return FreeDeviceMemory(); }

absl::StatusOr<std::unique_ptr<ModelTrainer>> TrainingGpu::MakeTrainer(const ParameterLayout& layout,
                                                                       const ModelTrainerOptions& options,
                                                                       bool deterministic) const {
  absl::StatusOr<std::unique_ptr<CudaTrainer>> trainer =
      CudaTrainer::Create(layout, options, index(), MakeFlashAttention(index(), deterministic));
  if (trainer.ok()) return *std::move(trainer);
  if (!absl::IsResourceExhausted(trainer.status())) return trainer.status();
  return absl::ResourceExhaustedError(absl::StrCat(
      "trainer.device: GPU ", index(),
      " has no room for the model in training, 18 bytes a weight: give a "
      "worker there a smaller share (the end of rollout.device), or take a larger GPU or a smaller model. ",
      trainer.status().message()));
}

}  // namespace warpsmith
