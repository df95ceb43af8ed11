// The kernels of one step, in their order. Knows arrays and sizes, no plan.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_LAUNCH_CUDA_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_LAUNCH_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "core/model/device_decoder.h"
#include "rollout_workers/device/step_arrays.h"

namespace warpsmith::device {

// Device memory that all steps use.
struct StepMemory {
  StepArrays arrays;
  int32_t* last_tokens = nullptr;       // [slots + 1]
  int32_t* result_token_ids = nullptr;  // [S]
  float* result_log_probs = nullptr;    // [S]
};

// What a GPU of a group does with the others: each has a shard of the layers, and one of them samples for all, so that
// nothing can make their tokens differ.
struct StepPeers {
  bool samples = false;
  PartialsExchange exchange;
  // Brings last_tokens of the one that samples to all. Every GPU calls it at the same place of a step.
  std::function<absl::Status(int32_t* last_tokens, cudaStream_t stream)> share_tokens;
  // Returns when all have called it: what may wait for every GPU, as taking memory does, is done before it, and what
  // makes a GPU wait for another after it.
  std::function<void()> meet;
};

// Both launch on `stream` and do not wait; the second works inside a capture. INTERNAL with CUDA's message, and the
// errors of `peers`, null where the GPU has the whole model.
absl::Status LaunchCopies(int64_t num_copies, int64_t page_tokens, const StepMemory& memory,
                          DeviceDecoder& decoder, cudaStream_t stream);
absl::Status LaunchLayersAndSamples(const StepShape& shape, int64_t num_token_ids, const StepMemory& memory,
                                    DeviceDecoder& decoder, cudaStream_t stream,
                                    const StepPeers* peers = nullptr);

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_LAUNCH_CUDA_H_
