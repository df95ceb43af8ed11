// The end of a process whose GPU is lost.
#ifndef WARPSMITH_ROLLOUT_WORKERS_LOST_GPU_H_
#define WARPSMITH_ROLLOUT_WORKERS_LOST_GPU_H_

#include "absl/status/status.h"

namespace warpsmith {

// Where `lost` (EngineStatus::lost) is not OK: logs it and ends the process with status 1 at once, so that what
// supervises it starts another. An ordinary end would wait for the GPU, which may never be done.
void ExitIfLost(const absl::Status& lost);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_LOST_GPU_H_
