// A GPU whose last users have just been killed.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_RELEASED_GPU_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_RELEASED_GPU_H_

#include <memory>

#include "absl/status/statusor.h"
#include "reward_service/referee/tensors/gpu_store.h"

namespace warpsmith {

// As GpuStore::Open(). What candidates of a referee that was killed had on the GPU may take the driver a moment to
// free, and nobody tells when it is done: tried for ten seconds, while somebody is at the other end of `socket`.
absl::StatusOr<std::unique_ptr<GpuStore>> OpenReleasedGpu(int index, int socket);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_RELEASED_GPU_H_
