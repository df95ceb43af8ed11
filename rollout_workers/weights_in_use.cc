#include "rollout_workers/weights_in_use.h"

#include "absl/strings/str_cat.h"

namespace warpsmith {

bool AreInUse(const LoadedWeights& weights, const EngineStatus& status) {
  return status.loaded && status.policy_version == weights.policy_version && !weights.sha256.empty() &&
         status.weights_sha256 == weights.sha256;
}

absl::Status CheckCanTake(const LoadedWeights& weights, const EngineStatus& status, bool may_mix) {
  if (status.asleep) {
    return absl::FailedPreconditionError(
        absl::StrCat("Version ", weights.policy_version,
                     " was not taken: the engine is asleep, and its memory given back; wake it first"));
  }
  if (may_mix && status.loaded && status.policy_version == weights.policy_version) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Version ", weights.policy_version,
        " is in use with other weights, and no token would say of which it is: publish these under "
        "another version, or commit them with SAMPLES_UNDER_WAY_END"));
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
