// The seam between judging and a device: what judge and verifier ask of that on which a candidate
// runs. A CPU stands behind it, and a fake in tests.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_JUDGING_DEVICE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_JUDGING_DEVICE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "reward_service/measure/judge_request.h"
#include "reward_service/measure/referee.h"
#include "reward_service/referee/process/fault.h"
#include "reward_service/referee/task/prepared_task.h"
#include "reward_service/referee/tensors/draw.h"
#include "reward_service/referee/timed_side.h"
#include "reward_service/referee/timer.h"
#include "warpsmith/v1/measurement.pb.h"

namespace warpsmith {

// Names the rooms where a candidate runs, from the fewest libraries to all of them.
enum class Room {
  kSealed,    // No library can do the candidate's arithmetic.
  kProducts,  // Libraries can do products of matrices and convolutions, and nothing else.
  kEmptied,  // All libraries run, and the candidate's own kernels return at once. What is right there is no own work.
  kOpen,  // All libraries run.
};
inline bool IsSealed(Room room) { return room == Room::kSealed || room == Room::kProducts; }

// How outputs are compared: with all numbers of the errors, or the fast way, as far as all are
// right.
enum class Comparing { kNumbers, kFast };

// A candidate that is loaded in a process of its own; every call is compared with what the
// reference makes of the same inputs. One thread at a time. Once a fault was returned, only its
// destruction makes sense.
class CheckedProgram {
 public:
  // Ends the process.
  virtual ~CheckedProgram() = default;

  // Loads an input set, which is shown from then on (Draw::shown), calls, waits for the end, and
  // compares what is there: outputs, those of the call before, inputs, what lies around them.
  // Nothing: all is right. Numbers go into the measurement's correctness.
  virtual std::optional<Fault> Call(const Draw& draw, Comparing comparing) = 0;
  // Calls once more on the inputs of the last call, as calls that warm the caches for a timed one
  // do. What it leaves is compared with the next Call().
  virtual std::optional<Fault> Repeat() = 0;
  // The last call's wall time [us].
  virtual double us() const = 0;

  // Whether other parameters than those of its construction can be put into it.
  virtual bool takes_parameters() const = 0;
  // Whether it computes in threads that may overwrite each other, in some calls and not in others:
  // then one call on each input set shows too little. If so, they get all the room that there is to
  // meet in the next calls.
  virtual absl::StatusOr<bool> SpreadThreads() = 0;
};

// A program, never null, and the fault with which its loading ended.
struct StartedProgram {
  std::unique_ptr<CheckedProgram> program;
  std::optional<Fault> fault;
  // Not on the candidate's clock: what it waited for memory that others had, and of the time in which it was loaded as
  // much as the reference's constructor takes.
  absl::Duration waited = absl::ZeroDuration();
  absl::Duration constructing = absl::ZeroDuration();
};

// Where the programs of one judgement run. For the thread that holds the lane. What is kept of the
// task, on_device(), was made by the same device: its PlaceTask stands beside OpenDevice. A status is a
// failure of the machine, UNAVAILABLE or INTERNAL where only another referee helps; INVALID_ARGUMENT
// says that the task is at fault. What a candidate does is a Fault.
class JudgingDevice {
 public:
  virtual ~JudgingDevice() = default;

  // Returns the rooms where the candidate is judged, one after the other, until it is right or its fault is its own. At
  // least one; kEmptied comes last where the candidate has no kernels that could be emptied.
  virtual std::vector<Room> Rooms(const TaskLayout& layout) const = 0;
  // Has the room ready, which takes seconds for the first program there, none of them the candidate's. Without a turn.
  virtual absl::Status OpenRoom(Room /*room*/) { return absl::OkStatus(); }
  // Returns whether a candidate that fails by an error in one room is judged in the next, too.
  virtual bool JudgesErrorsAgain() const { return false; }
  // Held while a candidate runs, where the device is one for all: TensorStore::turn(). Candidates are then verified
  // beside others.
  virtual DeviceTurn* turn() { return nullptr; }
  // Between these the calling thread is the one whose calls are timed. For whoever has the device alone.
  virtual absl::Status HoldLane() { return absl::OkStatus(); }
  virtual void LeaveLane() {}
  // Whether it has nothing to do, after a moment if need be, in which it recovers from processes that were killed. For
  // whoever has its turn alone.
  virtual absl::Status AwaitIdle() { return absl::OkStatus(); }
  // Where processes are made ready ahead: returns when one is, or after a while. Without a turn, so that nobody waits
  // for it who has one.
  virtual void AwaitSpare(PreparedTask& /*task*/, Room /*room*/) {}
  // A fresh process of the candidate, to be verified on the task's input sets. The task outlives
  // it.
  virtual absl::StatusOr<StartedProgram> StartCandidate(PreparedTask& task, Room room) = 0;
  // Of a program that had the device with others since then: whether a fault may have come of what they took of its
  // memory, of the host's, or of the program's seconds, and not of the program.
  virtual bool MayBeOthersDoing(const Fault& /*fault*/, absl::Time /*since*/) { return true; }
  // Has the reference ready beside which the task's candidates are timed, where it is not, and what is made ready ahead
  // for others: nobody opens the device beside whoever is timed. In a turn that may be shared, where a failure may be
  // others' doing. The time is none of a candidate's. The task is completed.
  virtual absl::Status PrepareReference(PreparedTask& /*task*/) { return absl::OkStatus(); }
  // Keeps a process that was verified beside others, to be timed behind a fresh one, where that is worth the same; ends
  // it otherwise, as where it may have lacked memory that others had. In that turn.
  virtual void KeepVerified(std::unique_ptr<CheckedProgram> /*program*/) {}
  // Has up to `num` processes ready of a candidate that is right, those that are kept included: each other one has made
  // these calls. Timing takes them before it starts others, so that it has the device alone for less long. In a turn
  // that may be shared, where a fault may be others' doing.
  virtual std::optional<Fault> PrepareCandidates(PreparedTask& /*task*/, Room /*room*/, Batch /*warm_ups*/,
                                                 int /*num*/) {
    return std::nullopt;
  }
  // Ends these, as far as they were not timed, and those that timing has left, for whose ends it does not wait while it
  // has the device alone. In a turn that may be shared, before the task is given back. UNAVAILABLE: they do not end.
  virtual bool has_kept_candidates() const { return false; }
  virtual absl::Status EndCandidates() { return absl::OkStatus(); }
  // For whoever has the device alone, where it does not come to rest, or lacks memory: kills such processes of all
  // judgements, and waits for a moment until what they had is taken back. Whether there were any.
  virtual bool KillKeptCandidates() { return false; }
  // Whether so much of its memory is free that few programs lack any.
  virtual bool HasPlenty() { return true; }
  // The same again, for the reference may have ended since, and measures what is timed once a task: for whoever has the
  // device alone.
  virtual absl::Status PrepareTiming(PreparedTask& /*task*/) { return absl::OkStatus(); }
  // The two sides that are timed, of a completed task, which outlives it as this device does. The
  // judgement has the lane since `lane_since`.
  virtual absl::StatusOr<std::unique_ptr<TimingDevice>> StartTiming(PreparedTask& task, Room room,
                                                                    absl::Time lane_since) = 0;

  // How candidates are timed here: all options but effort, input sets and the bound of the lane.
  // `num_warm_ups` are those of a candidate that takes parameters.
  virtual TimerOptions TimingOptions(const TaskLayout& layout) const = 0;
  // The effort that is asked for, as far as it means the same here.
  virtual TimingEffort EffortOf(const TimingEffort& asked) const { return asked; }
  // Adds to what was timed and sampled what the device knows: how well it could measure, which
  // times it doubts, bandwidth and what bounds the work.
  virtual void Describe(const TaskLayout& layout, v1::Timing* timing, v1::Profile* profile) const = 0;

  // After a fault: whether the device still computes as it should, so that the fault was the
  // program's. Not OK: the lane must end.
  virtual absl::Status CheckHealth() = 0;
  // TensorStore::Failure() of it.
  virtual absl::Status Failure() { return absl::OkStatus(); }
};

// One judgement as its device needs it. What is referred to outlives the device.
struct Judgement {
  const JudgeRequest& request;
  absl::Time deadline;
  v1::Measurement* measurement;
};

// Makes the device of a judgement, once, before anything runs. It writes into the measurement what
// it is.
using OpenDevice = std::function<absl::StatusOr<std::unique_ptr<JudgingDevice>>(const Judgement&)>;

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_JUDGING_DEVICE_H_
