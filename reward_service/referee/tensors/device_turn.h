// Who computes on a device that is one for all: one alone, who may be timed, or several who are not.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_DEVICE_TURN_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_DEVICE_TURN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace warpsmith {

// What somebody computes for, in reports.
enum class TurnFor { kVerifying, kTiming, kHealth, kLoading, kWindow, kDrawing, kRecording, kEnding };
inline constexpr size_t kNumTurnsFor = 8;

// A lock with two ways to hold it, fair by phases: who wants to share while somebody waits to be alone comes after him,
// and then all come at once who wait to share. So nobody waits for more than one turn of the other kind. Those who are
// alone come in the order in which they asked. Thread-safe.
class DeviceTurn {
 public:
  enum class Kind { kShared, kAlone };

  // Holds it while this lives. Nothing is held of a turn that is null.
  class Held {
   public:
    Held(DeviceTurn* turn, Kind kind, TurnFor what);
    ~Held();
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    absl::Duration waited() const { return since_ - asked_; }
    bool is_shared() const { return kind_ == Kind::kShared; }

   private:
    DeviceTurn* const turn_;
    const Kind kind_;
    const TurnFor what_;
    const absl::Time asked_ = absl::Now();
    absl::Time since_;
  };

  // Whether somebody has it who shares it: nobody can tell then whose work the device does.
  bool is_shared() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return num_sharing_ > 0;
  }

  // Seconds waited for and held since the last report, by what for; empty where nobody had a turn. One line.
  std::string TakeReport() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Use {
    int num_turns = 0;
    absl::Duration waited;
    absl::Duration held;
  };

  void Lock(Kind kind) ABSL_LOCKS_EXCLUDED(mutex_);
  void Unlock(Kind kind, TurnFor what, const Use& use) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  // Turns alone: those asked for, of which the others have ended.
  uint64_t num_asked_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t num_ended_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_sharing_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_waiting_to_share_ ABSL_GUARDED_BY(mutex_) = 0;
  std::array<Use, kNumTurnsFor> uses_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_DEVICE_TURN_H_
