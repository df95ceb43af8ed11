// A task's turns on a device that is one for all: beside others, or alone while it is suspected.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TASK_TASK_TURNS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TASK_TASK_TURNS_H_

#include <atomic>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reward_service/referee/tensors/device_turn.h"

namespace warpsmith {

// For ends of processes and memory that is given back: with others. Null where it does not come, after kTurnWaitMax:
// then they end without.
std::unique_ptr<DeviceTurn::Held> TurnToEnd(DeviceTurn* turn);

// What fails beside others, or leaves work on the device there, is the doing of nobody knows whom: a suspicion. A task
// that is suspected has the device alone. One that then does its work is cleared, so that it costs others nothing more;
// after some suspicions it is not any more, for each costs oracles. For one thread, but for Suspect().
class TaskTurns {
 public:
  // `turn` may be null. `is_always_alone`: what fails of this one is seen by another.
  TaskTurns(DeviceTurn* turn, bool is_always_alone)
      : turn_(turn), is_always_alone_(is_always_alone || turn == nullptr) {}

  // With others unless the task has to be alone. DEADLINE_EXCEEDED after kTurnWaitMax.
  absl::StatusOr<std::unique_ptr<DeviceTurn::Held>> Take();
  // Whether others had the device, too, since Begin(): of an oracle's life.
  bool has_shared() const { return has_shared_; }
  void Begin() { has_shared_ = false; }

  // From now on, as if it was suspected for good.
  void StayAlone() { is_always_alone_ = true; }

  // For any thread.
  void Suspect() { ++num_suspicions_; }
  bool IsAlone() const { return is_always_alone_ || num_suspicions_ > num_cleared_; }

  // What comes of `work`. Where it fails and others had the device, too, the task is suspected, and what comes of it
  // alone is told, once `begin_anew` was called. That is called, too, when the task is cleared: beside others an oracle
  // is another. Where `is_certain` says that others have no part in it, it is told at once.
  absl::Status SeeAloneIfItFails(
      absl::FunctionRef<absl::Status()> work, absl::FunctionRef<void()> begin_anew,
      absl::FunctionRef<bool()> is_certain = [] { return false; });

 private:
  absl::Status SeeAlone(absl::FunctionRef<absl::Status()> work, absl::FunctionRef<void()> begin_anew);

  DeviceTurn* const turn_;
  std::atomic<bool> is_always_alone_;
  std::atomic<int> num_suspicions_ = 0;
  int num_cleared_ = 0;  // of these
  bool has_shared_ = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TASK_TASK_TURNS_H_
