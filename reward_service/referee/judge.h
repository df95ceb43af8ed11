// From a candidate to its measurement: verified, timed against the reference, its work attributed.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_JUDGE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_JUDGE_H_

#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "reward_service/measure/judge_request.h"
#include "reward_service/referee/judging_device.h"
#include "reward_service/referee/memory_excuses.h"
#include "reward_service/referee/task/task_pool.h"
#include "reward_service/referee/verifier.h"
#include "warpsmith/v1/measurement.pb.h"

namespace warpsmith {

// What a judge works with; the pool outlives it.
struct JudgeTools {
  TaskPool* pool = nullptr;
  OpenDevice open_device;
};

// One judgement, on one thread. Where the device is one for all others may be judged meanwhile, on threads of their
// own; whoever is timed has it alone.
class Judge {
 public:
  Judge(const JudgeTools& tools, const JudgeRequest& request, absl::Time deadline)
      : tools_(tools), request_(request), deadline_(deadline) {}

  // Judges the candidate in one room after the other (JudgingDevice::Rooms), until it is right or its fault is its own.
  // It is HACK where it is right with its own kernels emptied. Returns what candidate or task did. Errors: a failure of
  // the machine; UNAVAILABLE also where a fault may be that of the device.
  absl::StatusOr<v1::Measurement> Run();

 private:
  // A turn of the device; while it is alone there, the lane too.
  class Turn;

  // Returns what the candidate did wrong; nothing when it is correct.
  absl::StatusOr<std::optional<Fault>> RunAll();
  absl::StatusOr<std::optional<Fault>> RunIn(Room room);
  absl::StatusOr<std::optional<Fault>> Time(Room room, bool takes_parameters);
  // Adds what a call launches. Nothing depends on it.
  void AddLaunches(Timer* timer, v1::Profile* profile);
  TimerOptions OptionsOf(bool takes_parameters) const;
  // On all input sets. On a device that is one for all beside others, and where what comes of that may be their doing
  // once more alone; from then on the candidate has the device alone.
  absl::StatusOr<Verified> Verify(Room room);
  // Nothing where that may be others' doing, whom the device was shared with.
  absl::StatusOr<std::optional<Verified>> VerifyBesideOthers(Room room);
  absl::StatusOr<Verified> VerifyNow(Room room, absl::Time since, double seconds_max);
  // Has ready what the candidate is timed beside, the first processes of its own that are timed, and then the device
  // alone.
  absl::Status AwaitReference();
  absl::StatusOr<std::optional<Fault>> PrepareCandidates(Room room, bool takes_parameters);
  absl::StatusOr<std::unique_ptr<Turn>> PrepareTiming();
  absl::Status PrepareReference();
  absl::Status PrepareReferenceIn(DeviceTurn::Kind kind);
  // The device, where others have it too: with them, or alone, and then with nothing to do. Waiting for it is not the
  // candidate's doing. UNAVAILABLE: it does not come to rest. DEADLINE_EXCEEDED.
  absl::StatusOr<std::unique_ptr<Turn>> TakeTurn(DeviceTurn::Kind kind);
  // For whoever has the turn alone. What references have left behind beside others ends with their oracles.
  absl::Status ClearDevice();
  void Convict(const Fault& fault);
  void Conclude(v1::Verdict verdict, std::string_view reason);
  v1::Grade& grade() { return *measurement_.mutable_grade(); }
  // The time since then, for which the candidate has waited, is not on its clock.
  void CountWaiting(absl::Time since) { CountWaited(absl::Now() - since); }
  void CountWaited(absl::Duration waited);

  const JudgeTools& tools_;
  const JudgeRequest& request_;
  const absl::Time deadline_;
  v1::Measurement measurement_;
  std::unique_ptr<JudgingDevice> device_;
  std::optional<MemoryExcuses> memory_;  // of the device
  std::shared_ptr<PooledTask> pooled_;
  PreparedTask* task_ = nullptr;
  // Since when it has the lane, moved on by what is not on its clock: waiting, and what it does beside others, whose
  // work would be on it.
  absl::Time lane_since_;
  bool is_alone_ = false;         // on the device from now on, also while it is verified
  bool only_convicts_ = false;    // the room: any fault there leads to the next one
  bool had_alone_ = false;        // the device, for a time
  bool has_timed_ = false;        // a call of the candidate's
  bool device_in_doubt_ = false;  // a process ended as it should not
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_JUDGE_H_
