// The kernels of one step, in their order. Knows arrays and sizes, no plan.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_LAUNCH_CUDA_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_LAUNCH_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "core/model/device_decoder.h"
#include "rollout_workers/device/step_arrays.h"

namespace warpsmith {

// Device memory that all steps use.
struct StepMemory {
  StepArrays arrays;
  int32_t* last_tokens = nullptr;       // [slots + 1]
  int32_t* result_token_ids = nullptr;  // [S]
  float* result_log_probs = nullptr;    // [S]
};

// Both launch on `stream` and do not wait; the second works inside a capture. INTERNAL with CUDA's message.
absl::Status LaunchCopies(int64_t num_copies, int64_t page_tokens, const StepMemory& memory,
                          DeviceDecoder& decoder, cudaStream_t stream);
absl::Status LaunchLayersAndSamples(const StepShape& shape, int64_t num_token_ids, const StepMemory& memory,
                                    DeviceDecoder& decoder, cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_LAUNCH_CUDA_H_
