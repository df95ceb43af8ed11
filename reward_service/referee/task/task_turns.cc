#include "reward_service/referee/task/task_turns.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr int kClearedMax = 8;

}  // namespace

std::unique_ptr<DeviceTurn::Held> TurnToEnd(DeviceTurn* turn) {
  auto held = DeviceTurn::Take(turn, DeviceTurn::Kind::kShared, absl::Now() + kTurnWaitMax);
  if (held.ok()) return *std::move(held);
  LogWarning(held.status().ToString());
  return nullptr;
}

absl::StatusOr<std::unique_ptr<DeviceTurn::Held>> TaskTurns::Take() {
  const auto kind = IsAlone() ? DeviceTurn::Kind::kAlone : DeviceTurn::Kind::kShared;
  ASSIGN_OR_RETURN(auto turn, DeviceTurn::Take(turn_, kind, absl::Now() + kTurnWaitMax));
  has_shared_ |= turn->is_shared();
  return turn;
}

// Others may have had the memory that was wanting, to open the device, too, or the time. And an exception that a
// reference's oracle would have taken for an answer may have come of that: beside others it is a failure.
absl::Status TaskTurns::SeeAloneIfItFails(absl::FunctionRef<absl::Status()> work,
                                          absl::FunctionRef<void()> begin_anew,
                                          absl::FunctionRef<bool()> is_certain) {
  if (IsAlone()) return SeeAlone(work, begin_anew);
  absl::Status status = work();
  if (status.ok() || !has_shared_ || is_certain()) return status;
  LogInfo(absl::StrCat("a task is seen alone, for beside others it failed: ", status.message()));
  Suspect();
  begin_anew();
  return SeeAlone(work, begin_anew);
}

absl::Status TaskTurns::SeeAlone(absl::FunctionRef<absl::Status()> work,
                                 absl::FunctionRef<void()> begin_anew) {
  const int num_suspicions = num_suspicions_;  // another one may come meanwhile
  absl::Status status = work();
  if (!status.ok() || is_always_alone_ || num_suspicions > kClearedMax) return status;
  num_cleared_ = num_suspicions;
  begin_anew();
  return status;
}

}  // namespace warpsmith
