#include "rollout_workers/weights_switch.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/model_fields.h"
#include "rollout_workers/weight_transport.h"

namespace warpsmith {

absl::Status WeightsSwitch::InTurn(absl::Time deadline, absl::FunctionRef<absl::Status()> work) {
  {
    absl::MutexLock lock(&mutex_);
    const auto is_free = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !is_taken_; };
    if (!mutex_.AwaitWithDeadline(absl::Condition(&is_free), deadline)) {
      return absl::DeadlineExceededError(
          "Another call prepares or commits weights, or has the worker sleep or wake, and has not ended: ask "
          "again");
    }
    is_taken_ = true;
  }
  absl::Status status = work();
  absl::MutexLock lock(&mutex_);
  is_taken_ = false;
  return status;
}

absl::Status WeightsSwitch::Prepare(const OfferedWeights& published, absl::Time deadline) {
  return InTurn(deadline, [&] { return PrepareInTurn(published, deadline); });
}

absl::Status WeightsSwitch::Commit(uint64_t policy_version, absl::Time deadline,
                                   paged::EntriesOnChange entries) {
  return InTurn(deadline, [&] { return CommitInTurn(policy_version, deadline, entries); });
}

absl::Status WeightsSwitch::Sleep(SleepDepth depth, absl::Time deadline) {
  return InTurn(deadline, [&] {
    absl::Status status = engine_->Sleep(depth, deadline);
    if (status.ok()) DropPreparedOnGpu();
    return status;
  });
}

absl::Status WeightsSwitch::Wake(absl::Time deadline) {
  return InTurn(deadline, [&] { return engine_->Wake(deadline); });
}

void WeightsSwitch::DropPreparedOnGpu() {
  if (prepared_ && prepared_->source != nullptr) prepared_.reset();
}

absl::Status WeightsSwitch::PrepareInTurn(const OfferedWeights& published, absl::Time deadline) {
  if (const std::string others = DifferingFields(published.model_fields, FieldsOf(config_));
      !others.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Version ", published.policy_version, " is of a model that computes other logits than this ",
        "worker's: ", others, ": start both with the same model section"));
  }
  const std::string sha256 = CombinedSha256(published);
  const EngineStatus status = engine_->status();
  const bool is_broadcast = published.transport == kNcclTransport;
  if (is_broadcast && status.asleep) {
    return absl::FailedPreconditionError(
        absl::StrCat("Version ", published.policy_version,
                     " was not received: the engine is asleep, and its memory given back; wake it first"));
  }
  if (!is_broadcast && status.loaded && status.policy_version == published.policy_version &&
      status.weights_sha256 == sha256) {
    return absl::OkStatus();
  }
  if (!is_broadcast && prepared_ && prepared_->policy_version == published.policy_version &&
      prepared_->sha256 == sha256) {
    return absl::OkStatus();
  }
  const absl::Time began = absl::Now();
  ASSIGN_OR_RETURN(const std::unique_ptr<WeightTransport> transport,
                   MakeTransport(published.transport, config_, engine_->cuda()));
  if (is_broadcast) DropPreparedOnGpu();
  ASSIGN_OR_RETURN(prepared_, transport->Prepare(published, deadline));
  LogInfo(absl::StrCat("prepared weights of version ", published.policy_version, " in ",
                       absl::FormatDuration(absl::Trunc(absl::Now() - began, absl::Microseconds(100)))));
  return absl::OkStatus();
}

absl::Status WeightsSwitch::CommitInTurn(uint64_t policy_version, absl::Time deadline,
                                         paged::EntriesOnChange entries) {
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
