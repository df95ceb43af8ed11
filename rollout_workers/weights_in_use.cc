#include "rollout_workers/weights_in_use.h"

#include "absl/strings/str_cat.h"

namespace warpsmith {

bool AreInUse(const LoadedWeights& weights, const EngineStatus& status) {
  return status.loaded && status.policy_version == weights.policy_version && !weights.sha256.empty() &&
         status.weights_sha256 == weights.sha256;
}

void WeightsUnderWay::Took(const LoadedWeights& weights, bool goes_on) {
  if (!goes_on) sha256_of_version_.clear();
  const auto [taken, is_new] = sha256_of_version_.emplace(weights.policy_version, weights.sha256);
  if (!is_new && taken->second != weights.sha256) taken->second.clear();
}

bool WeightsUnderWay::HasOthersOf(const LoadedWeights& weights) const {
  const auto found = sha256_of_version_.find(weights.policy_version);
  return found != sha256_of_version_.end() && (found->second.empty() || found->second != weights.sha256);
}

absl::Status CheckCanTake(const LoadedWeights& weights, const EngineStatus& status,
                          const WeightsUnderWay& under_way, bool may_mix) {
  if (status.asleep) {
    return absl::FailedPreconditionError(
        absl::StrCat("Version ", weights.policy_version,
                     " was not taken: the engine is asleep, and its memory given back; wake it first"));
  }
  const bool has_samples = status.num_active_samples + status.num_waiting_samples > 0;
  if (may_mix && ((status.loaded && status.policy_version == weights.policy_version) ||
                  (has_samples && under_way.HasOthersOf(weights)))) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Version ", weights.policy_version,
        " is in use with other weights, or samples under way have tokens of such, and no token would say of "
        "which it is: publish these under another version, or commit them with SAMPLES_UNDER_WAY_END"));
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
