// Who computes on a device that is one for all: one alone, who may be timed, or several who are not.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_DEVICE_TURN_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_DEVICE_TURN_H_

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace warpsmith {

// Longest wait of those who have no deadline of their own: more than all take who may be before them.
inline constexpr absl::Duration kTurnWaitMax = absl::Minutes(10);

// A lock with two ways to hold it, fair by phases: who wants to share while somebody waits to be alone comes after him,
// and then all come at once who wait to share. So nobody waits for more than three turns alone, or for one that is
// shared. Those who are alone come in the order in which they asked. Thread-safe.
class DeviceTurn {
 public:
  enum class Kind { kShared, kAlone };

  // Holds it while this lives. Nothing is held of a turn that is null.
  class Held {
   public:
    ~Held();
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    absl::Duration waited() const { return waited_; }
    bool is_shared() const { return kind_ == Kind::kShared; }

   private:
    friend class DeviceTurn;
    Held(DeviceTurn* turn, Kind kind, absl::Duration waited) : turn_(turn), kind_(kind), waited_(waited) {}

    DeviceTurn* const turn_;
    const Kind kind_;
    const absl::Duration waited_;
  };

  // Waits for it, until `deadline` at most: DEADLINE_EXCEEDED, and then others go on as if nobody had asked. A turn
  // that is free, or null, is had after the deadline, too.
  static absl::StatusOr<std::unique_ptr<Held>> Take(DeviceTurn* turn, Kind kind, absl::Time deadline);

  // Whether somebody has it who shares it: nobody can tell then whose work the device does.
  bool is_shared() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return num_sharing_ > 0;
  }

  // Whether several share it, at the latest by `deadline`.
  bool AwaitCompany(absl::Time deadline) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Whether it was had by then.
  bool Lock(Kind kind, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  bool LockAlone(absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool LockShared(absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetSharersIn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlock(Kind kind) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  // Those who wait to be alone, by numbers that are given once, in the order in which they asked.
  std::deque<uint64_t> waiting_alone_ ABSL_GUARDED_BY(mutex_);
  uint64_t num_asked_alone_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_held_alone_ ABSL_GUARDED_BY(mutex_) = false;
  int num_alone_in_row_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_sharing_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_waiting_to_share_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t num_let_in_ ABSL_GUARDED_BY(mutex_) = 0;  // how often those who waited to share were, all at once
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_DEVICE_TURN_H_
