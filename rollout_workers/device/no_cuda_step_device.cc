// Of builds without CUDA.
#include "absl/strings/str_cat.h"
#include "rollout_workers/device/open_cuda_step_device.h"

namespace warpsmith::device {

absl::StatusOr<std::unique_ptr<StepDevice>> OpenCudaStepDevice(const ModelConfig&,
                                                               const CudaStepOptions& options) {
  return absl::UnimplementedError(absl::StrCat("This build has no CUDA for the device ",
                                               CudaName(options.devices),
                                               ": make one with ./dev build cuda, or give cpu"));
}

absl::StatusOr<DeviceTurns> OpenCudaTurns(const std::vector<int>& devices) {
  return absl::UnimplementedError(absl::StrCat("This build has no CUDA for turns on ", CudaName(devices)));
}

absl::StatusOr<std::unique_ptr<WeightSource>> OpenCudaWeights(const ModelConfig&, const OfferedMemory&,
                                                              int device, absl::Time) {
  return absl::UnimplementedError(
      absl::StrCat("This build has no CUDA for weights on the device cuda:", device,
                   ": make one with ./dev build cuda, or publish a file"));
}

absl::StatusOr<std::unique_ptr<WeightSource>> ReceiveCudaWeights(const ModelConfig&, OfferedBroadcast,
                                                                 const std::vector<int>& devices,
                                                                 absl::Time) {
  return absl::UnimplementedError(absl::StrCat("This build has no CUDA for weights on the device ",
                                               CudaName(devices),
                                               ": make one with ./dev build cuda, or publish a file"));
}

}  // namespace warpsmith::device
