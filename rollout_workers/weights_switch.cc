#include "rollout_workers/weights_switch.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "rollout_workers/weight_transport.h"

namespace warpsmith {

absl::Status WeightsSwitch::Prepare(const OfferedWeights& published, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const std::string sha256 = CombinedSha256(published);
  const EngineStatus status = engine_->status();
  if (status.loaded && status.policy_version == published.policy_version && status.weights_sha256 == sha256) {
    return absl::OkStatus();
  }
  if (prepared_ && prepared_->policy_version == published.policy_version && prepared_->sha256 == sha256) {
    return absl::OkStatus();
  }
  const absl::Time began = absl::Now();
  ASSIGN_OR_RETURN(const std::unique_ptr<WeightTransport> transport,
                   MakeTransport(published.transport, config_, engine_->cuda()));
  ASSIGN_OR_RETURN(prepared_, transport->Prepare(published, deadline));
  LogInfo(absl::StrCat("prepared weights of version ", published.policy_version, " in ",
                       absl::FormatDuration(absl::Trunc(absl::Now() - began, absl::Microseconds(100)))));
  return absl::OkStatus();
}

absl::Status WeightsSwitch::Commit(uint64_t policy_version, absl::Time deadline, EntriesOnChange entries) {
  absl::MutexLock lock(&mutex_);
  if (prepared_ && prepared_->policy_version == policy_version) {
    const absl::Time began = absl::Now();
    const absl::Status swapped = engine_->SwapWeights(*prepared_, deadline, entries);
    // Kept where the old weights are still in use: the commit may be repeated. Otherwise the next Prepare reads anew.
    if (absl::IsFailedPrecondition(swapped) || absl::IsUnimplemented(swapped)) return swapped;
    prepared_.reset();
    RETURN_IF_ERROR(swapped);
    LogInfo(absl::StrCat("weights of version ", policy_version, " are in use, ",
                         absl::FormatDuration(absl::Trunc(absl::Now() - began, absl::Microseconds(100))),
                         " after they were committed"));
    return absl::OkStatus();
  }
  const EngineStatus status = engine_->status();
  if (status.loaded && status.policy_version == policy_version) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "Version ", policy_version, " is not prepared; ",
      prepared_ ? absl::StrCat("version ", prepared_->policy_version, " is") : "nothing is", ", and ",
      status.loaded ? absl::StrCat("version ", status.policy_version, " is in use") : "no weights are in use",
      ": prepare it first"));
}

}  // namespace warpsmith
