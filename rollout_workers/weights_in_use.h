// What the weights in use, and those that drew tokens of samples under way, allow of new ones.
#ifndef WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_IN_USE_H_
#define WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_IN_USE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "rollout_workers/engine.h"
#include "rollout_workers/weights.h"

namespace warpsmith {

// Whether an engine of this status computes with `weights`, as far as a sha256 tells.
bool AreInUse(const LoadedWeights& weights, const EngineStatus& status);

// The weights that samples under way may have tokens of. A token names its weights by their version alone.
class WeightsUnderWay {
 public:
  // `weights` were taken. `goes_on`: with samples of those before.
  void Took(const LoadedWeights& weights, bool goes_on);

  // Whether others were taken under the version of `weights`, or it is not known that they were the same.
  bool HasOthersOf(const LoadedWeights& weights) const;

 private:
  std::map<uint64_t, std::string> sha256_of_version_;  // empty: not known
};

// FAILED_PRECONDITION where it cannot take them now: it is asleep, or samples are to go on (`may_mix`) with other
// weights under a version that is in use or has drawn tokens of them, which no token could tell from those.
absl::Status CheckCanTake(const LoadedWeights& weights, const EngineStatus& status,
                          const WeightsUnderWay& under_way, bool may_mix);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_WEIGHTS_IN_USE_H_
