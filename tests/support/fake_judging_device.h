// A device whose candidates do what a script says, without a process. What they did is counted.
#ifndef WARPSMITH_TESTS_SUPPORT_FAKE_JUDGING_DEVICE_H_
#define WARPSMITH_TESTS_SUPPORT_FAKE_JUDGING_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reward_service/referee/judging_device.h"
#include "tests/support/fake_timing_device.h"

namespace warpsmith {

// How call number `call` of a process ends, repeated calls counted.
using Calls = std::function<std::optional<Fault>(const Draw& draw, int call)>;

inline Calls Right() {
  return [](const Draw&, int) { return std::nullopt; };
}
inline Calls FaultAt(int first_call, Fault fault) {
  return [first_call, fault](const Draw&, int call) {
    return call < first_call ? std::nullopt : std::optional(fault);
  };
}
inline Calls FaultOn(std::string style, Fault fault) {
  return [style = std::move(style), fault](const Draw& draw, int) {
    return draw.style == style ? std::optional(fault) : std::nullopt;
  };
}

inline Fault Wrong() { return {v1::VERDICT_INCORRECT, "4 of 4 elements wrong"}; }
inline Fault Crash() { return {v1::VERDICT_RUNTIME_ERROR, "illegal memory access"}; }
inline Fault Hang() { return {v1::VERDICT_TIMEOUT, "a call took longer than 2 s"}; }
inline Fault Withheld() {
  return {.verdict = v1::VERDICT_RUNTIME_ERROR, .reason = "used a withheld library", .withheld = true};
}

// What a candidate does in a room.
struct CandidateScript {
  std::optional<Fault> start_fault;
  Calls calls = Right();
  bool takes_parameters = true;
  bool has_threads = false;
  double us = 10;  // of each call
  // When it is timed, and when that is over.
  std::function<CallResult(int call)> timed_calls = Takes(60);
  std::function<absl::StatusOr<v1::Profile>(int process)> launches;
};

// What stays when a judgement ends. Outlives its devices.
struct FakeMachine {
  CandidateScript sealed;
  CandidateScript products;
  CandidateScript emptied;
  CandidateScript open;
  std::function<CallResult(int call)> reference_calls = Takes(210);
  std::optional<Fault> reference_fault;  // when it is made ready
  TimerOptions timing;
  DeviceTurn* turn = nullptr;  // of a device that is one for all
  // Whether it has nothing to do: for a judgement, and for an oracle that is alone.
  std::function<absl::Status()> idle = [] { return absl::OkStatus(); };
  std::function<bool()> end_waiting = [] { return false; };  // of a task, alone
  int num_references_ended = 0;
  bool has_plenty = true;
  bool was_scarce = false;  // for a task, whenever it asks
  std::function<bool()> is_crowded = [] { return false; };
  int64_t bytes_taken =
      0;  // of its memory, by anybody: where that is more than a task's own it is crowded, too
  int num_batched_calls = 1;
  bool judges_errors_again = false;
  std::vector<Room> rooms = {Room::kSealed, Room::kOpen};
  bool may_be_others_doing = true;  // any fault beside others
  absl::Status lost_beside_others;  // not OK: no program starts in a turn that is shared
  std::function<absl::Status()> prepare_reference = [] { return absl::OkStatus(); };
  // When so many processes are made ready to be timed; without a fault they are kept until they are ended.
  std::function<std::optional<Fault>(int num)> prepare_candidates = [](int) { return std::nullopt; };
  int num_kept = 0;
  int num_verified_kept = 0;  // to be timed; each ends at once here
  int num_ended = 0;          // in a turn that is shared
  bool keeps_others = false;  // these are of other judgements, which do not end
  absl::Status kept_end;
  // A fault breaks the device for good: it is not healthy from then on.
  bool breaks_at_fault = false;
  absl::Duration opening;           // that takes OpenRoom()
  absl::Duration preparing;         // that takes PrepareTiming()
  absl::Duration waits_for_memory;  // each process, when it starts
  absl::Duration constructing;      // the same, of what the reference's constructor takes
  absl::Time timed_since;           // as the judge said when it was to be timed last
  // Not OK: the device is gone. No program starts, threads are not spread.
  absl::Status lost;

  bool holds_lane = false;
  int num_started = 0;
  int num_alive = 0;
  int num_repeated = 0;
  int num_health_checks = 0;
  int num_calls_after_fault = 0;         // of a process that had one
  std::vector<std::string> called_on;    // styles, in the order of calls
  std::vector<int64_t> parameter_seeds;  // likewise
  std::atomic<bool> is_broken = false;   // a thread that makes tasks may see it first
  absl::Status failure;                  // that no call told

  CandidateScript& in(Room room) {
    if (room == Room::kSealed) return sealed;
    if (room == Room::kProducts) return products;
    return room == Room::kEmptied ? emptied : open;
  }
  std::optional<Fault> Note(std::optional<Fault> fault) {
    if (breaks_at_fault && fault) is_broken = true;
    return fault;
  }
};

class FakeProgram : public CheckedProgram {
 public:
  FakeProgram(FakeMachine* machine, const CandidateScript& script, v1::Measurement* measurement)
      : machine_(machine), script_(script), measurement_(measurement) {
    ++machine_->num_started;
    ++machine_->num_alive;
  }
  ~FakeProgram() override { --machine_->num_alive; }

  std::optional<Fault> Call(const Draw& draw, Comparing comparing) override {
    draw.shown = true;
    former_draw_ = &draw;
    machine_->called_on.push_back(draw.style);
    machine_->parameter_seeds.push_back(draw.parameter_seed);
    v1::Correctness& numbers = *measurement_->mutable_grade()->mutable_correctness();
    if (comparing == Comparing::kNumbers) numbers.set_num_draws(numbers.num_draws() + 1);
    return CallOnce();
  }
  std::optional<Fault> Repeat() override {
    ++machine_->num_repeated;
    return CallOnce();
  }
  double us() const override { return script_.us; }
  bool takes_parameters() const override { return script_.takes_parameters; }
  absl::StatusOr<bool> SpreadThreads() override {
    if (!machine_->lost.ok()) return machine_->lost;
    return script_.has_threads;
  }

 private:
  std::optional<Fault> CallOnce() {
    machine_->num_calls_after_fault += has_fault_ ? 1 : 0;
    std::optional<Fault> fault = machine_->Note(script_.calls(*former_draw_, num_calls_++));
    has_fault_ |= fault.has_value();
    return fault;
  }

  FakeMachine* const machine_;
  const CandidateScript script_;
  v1::Measurement* const measurement_;
  const Draw* former_draw_ = nullptr;
  int num_calls_ = 0;
  bool has_fault_ = false;
};

class FakeJudgingDevice : public JudgingDevice {
 public:
  FakeJudgingDevice(FakeMachine* machine, v1::Measurement* measurement)
      : machine_(machine), measurement_(measurement) {}

  std::vector<Room> Rooms(const TaskLayout&) const override { return machine_->rooms; }
  bool JudgesErrorsAgain() const override { return machine_->judges_errors_again; }
  DeviceTurn* turn() override { return machine_->turn; }
  absl::Status AwaitIdle() override { return machine_->idle(); }
  absl::Status HoldLane() override {
    machine_->holds_lane = true;
    return absl::OkStatus();
  }
  void LeaveLane() override { machine_->holds_lane = false; }
  bool MayBeOthersDoing(const Fault&, absl::Time) override { return machine_->may_be_others_doing; }
  absl::Status OpenRoom(Room) override {
    absl::SleepFor(machine_->opening);
    return absl::OkStatus();
  }
  absl::StatusOr<StartedProgram> StartCandidate(PreparedTask&, Room room) override {
    if (!machine_->lost.ok()) return machine_->lost;
    if (machine_->turn != nullptr && machine_->turn->is_shared() && !machine_->lost_beside_others.ok())
      return machine_->lost_beside_others;
    const CandidateScript& script = machine_->in(room);
    absl::SleepFor(machine_->waits_for_memory + machine_->constructing);
    return StartedProgram{std::make_unique<FakeProgram>(machine_, script, measurement_),
                          machine_->Note(script.start_fault), machine_->waits_for_memory,
                          machine_->constructing};
  }
  absl::Status PrepareReference(PreparedTask&) override { return machine_->prepare_reference(); }
  void KeepVerified(std::unique_ptr<CheckedProgram>) override {
    if (machine_->turn->is_shared()) ++machine_->num_verified_kept;
  }
  std::optional<Fault> PrepareCandidates(PreparedTask&, Room, Batch, int num) override {
    std::optional<Fault> fault = machine_->prepare_candidates(num);
    if (!fault) machine_->num_kept += num;
    return fault;
  }
  bool has_kept_candidates() const override { return machine_->num_kept > 0; }
  absl::Status EndCandidates() override {
    if (machine_->turn->is_shared()) machine_->num_ended += machine_->num_kept;
    if (!machine_->keeps_others) machine_->num_kept = 0;
    return machine_->kept_end;
  }
  bool KillKeptCandidates() override { return std::exchange(machine_->num_kept, 0) > 0; }
  bool HasPlenty() override { return machine_->has_plenty; }
  absl::Status PrepareTiming(PreparedTask&) override {
    absl::SleepFor(machine_->preparing);
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<TimingDevice>> StartTiming(PreparedTask&, Room room,
                                                            absl::Time since) override {
    if (!machine_->lost.ok()) return machine_->lost;
    machine_->timed_since = since;
    const auto noted = [this](std::function<CallResult(int)> calls) {
      return [machine = machine_, calls = std::move(calls)](int call) {
        CallResult result = calls(call);
        machine->Note(result.fault);
        return result;
      };
    };
    auto timing = std::make_unique<FakeTimingDevice>(noted(machine_->reference_calls),
                                                     noted(machine_->in(room).timed_calls));
    timing->launches = machine_->in(room).launches;
    return timing;
  }
  TimerOptions TimingOptions(const TaskLayout&) const override { return machine_->timing; }
  void Describe(const TaskLayout&, v1::Timing* timing, v1::Profile* profile) const override {
    timing->set_quality("fake" + timing->quality());
    profile->set_bound("memory");
  }
  absl::Status CheckHealth() override {
    ++machine_->num_health_checks;
    return machine_->is_broken ? absl::InternalError("it does not add up") : absl::OkStatus();
  }
  absl::Status Failure() override { return machine_->failure; }

 private:
  FakeMachine* const machine_;
  v1::Measurement* const measurement_;
};

// What it keeps of a task: nothing.
class FakeTaskOnDevice : public TaskOnDevice {
 public:
  explicit FakeTaskOnDevice(FakeMachine* machine) : machine_(machine) {}
  bool EndWaiting() override { return machine_->end_waiting(); }
  bool EndReference() override {
    ++machine_->num_references_ended;
    return false;
  }
  DeviceTurn* turn() const override { return machine_->turn; }
  bool WasScarceSince(absl::Time) const override { return machine_->was_scarce; }
  bool HasPlenty() const override { return machine_->has_plenty; }
  bool IsCrowded(int64_t own_bytes) const override {
    return machine_->is_crowded() || machine_->bytes_taken > own_bytes;
  }
  absl::Status AwaitIdle(Behind) override { return machine_->idle(); }
  int NumBatchedCalls(const TaskLayout&) const override { return machine_->num_batched_calls; }
  absl::Status StartReference(const PreparedTask&) override { return absl::OkStatus(); }
  absl::Status WarmReference(const PreparedTask&, absl::Time) override {
    const auto fault = machine_->Note(machine_->reference_fault);
    return fault ? TaskAtFault(fault->reason) : absl::OkStatus();
  }

 private:
  FakeMachine* const machine_;
};

inline PlaceTask PlacesOf(FakeMachine* machine) {
  return [machine] { return std::make_unique<FakeTaskOnDevice>(machine); };
}

inline OpenDevice DevicesOf(FakeMachine* machine) {
  return [machine](const Judgement& judgement) {
    return std::make_unique<FakeJudgingDevice>(machine, judgement.measurement);
  };
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_FAKE_JUDGING_DEVICE_H_
