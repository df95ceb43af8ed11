// What the weights in use allow of new ones.
#ifndef WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_IN_USE_H_
#define WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_IN_USE_H_

#include "absl/status/status.h"
#include "rollout_workers/engine.h"
#include "rollout_workers/weights.h"

namespace warpsmith {

// Whether an engine of this status computes with `weights`, as far as a sha256 tells.
bool AreInUse(const LoadedWeights& weights, const EngineStatus& status);

// FAILED_PRECONDITION where it cannot take them now: it is asleep, or samples are to go on (`may_mix`) with other
// weights under the version in use, which no token could tell from those.
absl::Status CheckCanTake(const LoadedWeights& weights, const EngineStatus& status, bool may_mix);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_IN_USE_H_
