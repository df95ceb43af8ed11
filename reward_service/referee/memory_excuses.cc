#include "reward_service/referee/memory_excuses.h"

#include <poll.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kTakingBackMax = absl::Seconds(1);
constexpr int kTakingBackPauseMs = 20;

}  // namespace

void MemoryExcuses::MakeRoom() {
  if (has_lacked_ || !device_->HasPlenty()) (void)device_->KillKeptCandidates();
}

// A hang, or a HACK, does not come of that.
bool MemoryExcuses::IsExcused(const Fault& fault, absl::Time since) {
  if (device_->turn() == nullptr || has_lacked_) return false;
  if (fault.verdict == v1::VERDICT_TIMEOUT || fault.verdict == v1::VERDICT_HACK) return false;
  has_lacked_ = device_->MayBeOthersDoing(fault, since) && device_->KillKeptCandidates();
  return has_lacked_;
}

absl::Status MemoryExcuses::CheckTasks(const Fault& fault, const PreparedTask& task) {
  if (device_->turn() == nullptr || !SaysWantOfMemory(fault.reason)) return absl::OkStatus();
  // A quarter is plenty for a call of which the device has room for many.
  const auto left_it_little = [&] {
    return (task.are_draws_on_host() || !device_->HasPlenty()) && task.IsCrowded();
  };
  // Its own memory is taken back first, and a driver tells nobody when it is.
  const absl::Time end = absl::Now() + kTakingBackMax;
  while (left_it_little()) {
    if (absl::Now() > end)
      return absl::ResourceExhaustedError(absl::StrCat("tasks left a candidate no memory: ", fault.reason));
    poll(nullptr, 0, kTakingBackPauseMs);
  }
  return absl::OkStatus();
}

absl::Status MemoryExcuses::Try(const PreparedTask& task, absl::FunctionRef<absl::Status()> attempt) {
  absl::Status status = attempt();
  if (status.ok() || device_->turn() == nullptr || !task.IsCrowded()) return status;
  if (device_->KillKeptCandidates()) status = attempt();
  // What the task needs beyond its draws, with nobody beside it, is its own fault.
  return task.IsCrowded() ? OfReference(std::move(status)) : status;
}

absl::Status MemoryExcuses::OfReference(absl::Status status) const {
  if (device_->turn() == nullptr) return status;
  if (!absl::IsInvalidArgument(status) || !SaysWantOfMemory(StdView(status.message()))) return status;
  return absl::ResourceExhaustedError(status.message());
}

}  // namespace warpsmith
