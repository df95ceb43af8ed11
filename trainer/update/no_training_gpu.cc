// Builds without CUDA open no GPU.
#include "absl/strings/str_cat.h"
#include "trainer/update/training_gpu.h"

namespace warpsmith {

absl::StatusOr<std::unique_ptr<TrainingGpu>> TrainingGpu::Open(int index) {
  return absl::UnimplementedError(absl::StrCat("trainer.device: this build has no CUDA for GPU ", index,
                                               ": make one with ./dev build cuda, or give cpu"));
}

absl::StatusOr<int64_t> TrainingGpu::FreeMemory() const {
  return absl::UnimplementedError("trainer.device: this build has no CUDA");
}

absl::StatusOr<std::unique_ptr<ModelTrainer>> TrainingGpu::MakeTrainer(const ParameterLayout&,
                                                                       const ModelTrainerOptions&,
                                                                       bool) const {
  return absl::UnimplementedError("trainer.device: this build has no CUDA");
}

}  // namespace warpsmith
