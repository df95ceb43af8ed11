#include "reward_service/referee/memory_excuses.h"

#include <poll.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kTakingBackMax = absl::Seconds(1);
constexpr int kTakingBackPauseMs = 20;

// Waits, for a driver tells nobody when it has taken back what ended processes had: whether memory is wanting still.
bool IsWantingStill(absl::FunctionRef<bool()> is_wanting) {
  const absl::Time end = absl::Now() + kTakingBackMax;
  while (is_wanting()) {
    if (absl::Now() > end) return true;
    poll(nullptr, 0, kTakingBackPauseMs);
  }
  return false;
}

}  // namespace

void MemoryExcuses::MakeRoom(TaskPool* pool) {
  if (has_lacked_ || !device_->HasPlenty()) (void)device_->KillKeptCandidates();
  if (!device_->HasPlenty() && pool->EndReferences())
    (void)IsWantingStill([&] { return !device_->HasPlenty(); });
}

absl::Status MemoryExcuses::CheckRoom(const PreparedTask& task, TaskPool* pool) {
  if (device_->turn() == nullptr) return absl::OkStatus();
  const int num_others = pool->num_judged() - 1;
  if (num_others < 1) return absl::OkStatus();  // another attempt would find no more
  if (!IsWantingStill([&] { return !device_->HasPlenty() && task.IsCrowded(); })) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("less than a quarter of the GPU's memory is free to time a candidate; ", num_others,
                   " other tasks are judged"));
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
  // Its own memory is taken back first.
  if (!IsWantingStill(left_it_little)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("tasks left a candidate no memory: ", fault.reason));
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
