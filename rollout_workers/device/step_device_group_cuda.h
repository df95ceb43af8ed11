// A StepDevice on several GPUs of one host, by tensor parallelism over NCCL.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_DEVICE_GROUP_CUDA_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_DEVICE_GROUP_CUDA_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/model_config.h"
#include "rollout_workers/device/open_cuda_step_device.h"
#include "rollout_workers/device/step_device.h"
#include "rollout_workers/device/step_device_cuda.h"

namespace warpsmith::device {

// The members of a group, in the order of options.devices, and what ends their collectives. The first samples: the head
// is read by it alone, which costs a step of Qwen3-32B on two GPUs a twentieth of its reading, and half of that could
// be saved by cutting it.
struct CudaStepMembers {
  std::vector<std::unique_ptr<CudaStepDevice>> devices;
  std::function<void()> abort;
};

// As OpenCudaStepDevice, of more than one GPU and with num_token_ids over 0. All have as many pages as the least has.
absl::StatusOr<CudaStepMembers> OpenCudaStepMembers(const ModelConfig& config,
                                                    const CudaStepOptions& options);

// Also of one GPU, whose calls end by the same deadlines.
absl::StatusOr<std::unique_ptr<StepDevice>> OpenCudaStepGroup(const ModelConfig& config,
                                                              const CudaStepOptions& options);

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_DEVICE_GROUP_CUDA_H_
