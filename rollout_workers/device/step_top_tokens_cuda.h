// The most probable tokens beside those of a step, where samples of it want them.
#ifndef WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_TOP_TOKENS_CUDA_H_
#define WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_TOP_TOKENS_CUDA_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/device_decoder.h"
#include "core/model/device_memory.h"
#include "core/model/handles_cuda.h"
#include "rollout_workers/device/step_launch_cuda.h"
#include "rollout_workers/paged/step_plan.h"

namespace warpsmith::device {

// Launched behind a step, outside its graph, and only where a sample wants some: other steps copy and compute nothing
// for it. One thread at a time.
class StepTopTokens {
 public:
  // For `num_steps` steps in flight of at most `samples_max` samples, on the current device.
  static absl::StatusOr<StepTopTokens> Create(int num_steps, int samples_max);

  // Launches what `plan` wants on `stream`, behind its step's samples, and the copy to the host; does not wait. `turn`:
  // which of the steps in flight it is. INTERNAL with CUDA's message.
  absl::Status Launch(int turn, const paged::StepPlan& plan, int64_t num_token_ids, const StepMemory& memory,
                      const DeviceDecoder& decoder, cudaStream_t stream);

  // Adds them to the results of the step that was launched last with `turn` and has ended.
  void AddTo(std::vector<paged::TokenResult>& results, int turn) const;

 private:
  struct HostStep {
    PinnedBlock counts;  // [samples_max] int32
    PinnedBlock tops;    // [samples_max, kTopTokensMax] TokenLogProb
    bool wants = false;
  };

  std::vector<HostStep> host_steps_;
  DeviceMemory counts_, tops_;  // likewise
};

}  // namespace warpsmith::device

#endif  // WARPSMITH_ROLLOUT_WORKERS_DEVICE_STEP_TOP_TOKENS_CUDA_H_
