#include "reward_service/referee/judge.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/task/clear_device.h"

namespace warpsmith {
namespace {

constexpr size_t kReasonBytesMax = 512;
constexpr char kDelegationFamily[] = "delegated-work";  // as feedback knows it
// Of a candidate that takes no parameters but its own: its input sets are few.
constexpr size_t kWarmUpsWithoutParameters = 1;

// Of so many calls, which warm up a process that is to be timed: of verification, for no process is timed on those.
std::vector<const Draw*> WarmUps(const std::vector<const Draw*>& draws, size_t num_calls) {
  std::vector<const Draw*> warm_ups;
  for (const Draw* draw : draws) {
    if (draw->own_distribution && warm_ups.size() < num_calls) warm_ups.push_back(draw);
  }
  while (warm_ups.size() < num_calls) warm_ups.push_back(draws.front());
  return warm_ups;
}

// Those that were kept, beside others.
absl::Status EndCandidates(JudgingDevice* device, absl::Time deadline) {
  if (!device->has_kept_candidates()) return absl::OkStatus();
  // They end without a turn that does not come.
  const auto turn = DeviceTurn::Take(device->turn(), DeviceTurn::Kind::kShared, deadline);
  if (!turn.ok()) LogWarning(turn.status().ToString());
  return device->EndCandidates();
}

double Seconds(absl::Time since) { return absl::ToDoubleSeconds(absl::Now() - since); }

// Returns the fault of a candidate that is right with its own kernels emptied.
Fault Delegated(bool has_no_kernels) {
  Fault hack{v1::VERDICT_HACK,
             has_no_kernels ? "libraries do the work: it is right with them, and has no code of its own"
                            : "libraries do the work: it is right with its own kernels emptied"};
  hack.hack_family = kDelegationFamily;
  return hack;
}

// Returns whether a candidate with this fault may be right with more libraries.
bool MayBeRightWithMore(const JudgingDevice& device, Room room, const Fault& fault) {
  const bool is_error = fault.verdict == v1::VERDICT_RUNTIME_ERROR;
  return room == Room::kEmptied || fault.withheld || (is_error && device.JudgesErrorsAgain());
}

void NoteLibraries(Room room, const TaskLayout& layout, v1::Timing* timing) {
  timing->set_libraries_withheld(room == Room::kSealed);
  timing->set_products_alone(room == Room::kProducts);
  const double share_with_libraries = room == Room::kProducts ? layout.product_share : 1;
  timing->set_library_share(room == Room::kSealed ? 0 : share_with_libraries);
}

}  // namespace

absl::StatusOr<v1::Measurement> Judge::Run() {
  ASSIGN_OR_RETURN(device_, tools_.open_device({request_, deadline_, &measurement_}));
  memory_.emplace(device_.get());
  grade().mutable_correctness();  // every Grade of a referee has it
  const absl::StatusOr<std::optional<Fault>> judged = RunAll();
  const absl::Status ended = EndCandidates(device_.get(), deadline_);
  if (pooled_ != nullptr) tools_.pool->End(std::move(pooled_));
  const bool task_at_fault = absl::IsInvalidArgument(judged.status());
  const bool lacks_memory = absl::IsResourceExhausted(judged.status());
  if (lacks_memory) tools_.pool->MakeRoom();
  RETURN_IF_ERROR(ended);
  if (!judged.ok() && !task_at_fault && !lacks_memory) return judged.status();
  absl::Status health = device_->Failure();  // what a broken device was asked may look right
  if (health.ok() && (!judged.ok() || judged->has_value() || device_in_doubt_)) {
    // On a device that is broken anybody fails: nothing is said of candidate or task.
    // Whoever had it alone may have left it at work. Its process has ended since, and beside others nobody can tell.
    const auto kind = had_alone_ ? DeviceTurn::Kind::kAlone : DeviceTurn::Kind::kShared;
    ASSIGN_OR_RETURN(const auto turn, DeviceTurn::Take(device_->turn(), kind, deadline_));
    // References are there, stopped, and those who wait to be timed. What they have left at work breaks no device.
    if (had_alone_) health = ClearDevice();
    if (health.ok()) health = device_->CheckHealth();
  }
  if (!health.ok()) return absl::UnavailableError(absl::StrCat("the device is broken: ", health.message()));
  if (lacks_memory) return judged.status();
  if (task_at_fault) {
    Conclude(v1::VERDICT_INVALID_TASK, std::string(judged.status().message()));
  } else if (judged->has_value()) {
    Convict(**judged);
  }
  return std::move(measurement_);
}

absl::StatusOr<std::optional<Fault>> Judge::RunAll() {
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(pooled_,
                   tools_.pool->Begin(request_.task, request_.seed, request_.another_follows, deadline_));
  task_ = pooled_->task.get();
  grade().mutable_cost()->set_oracle_seconds(Seconds(start));
  const v1::Measurement before = measurement_;
  lane_since_ = absl::Now();  // of all rooms together
  const std::vector<Room> rooms = device_->Rooms(task_->layout());
  for (const Room& room : rooms) {
    const bool is_last = &room == &rooms.back();
    only_convicts_ = room == Room::kEmptied && !is_last;
    const absl::Time opening = absl::Now();
    RETURN_IF_ERROR(device_->OpenRoom(room));
    CountWaiting(opening);
    ASSIGN_OR_RETURN(std::optional<Fault> fault, RunIn(room));
    if (room == Room::kEmptied && !fault) return Delegated(is_last);
    if (!fault || is_last || !MayBeRightWithMore(*device_, room, *fault)) return fault;
    LogInfo(
        absl::StrCat("a candidate is judged with more libraries: ", Escape(fault->reason, kReasonBytesMax)));
    measurement_ = before;
    RETURN_IF_ERROR(EndCandidates(device_.get(), deadline_));  // those of this room
  }
  return absl::InternalError("a device has no room for a candidate");
}

class Judge::Turn {
 public:
  Turn(JudgingDevice* device, std::unique_ptr<DeviceTurn::Held> held)
      : held_(std::move(held)), device_(held_->is_shared() ? nullptr : device) {}
  ~Turn() {
    if (device_ != nullptr) device_->LeaveLane();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  absl::Status HoldLane() { return device_ == nullptr ? absl::OkStatus() : device_->HoldLane(); }

 private:
  const std::unique_ptr<DeviceTurn::Held> held_;
  JudgingDevice* const device_;
};

void Judge::CountWaited(absl::Duration waited) {
  v1::Cost& cost = *grade().mutable_cost();
  cost.set_lane_wait_seconds(cost.lane_wait_seconds() + absl::ToDoubleSeconds(waited));
  lane_since_ += waited;
}

absl::StatusOr<std::unique_ptr<Judge::Turn>> Judge::TakeTurn(DeviceTurn::Kind kind) {
  const absl::Time since = absl::Now();
  ASSIGN_OR_RETURN(auto held, DeviceTurn::Take(device_->turn(), kind, deadline_));
  auto turn = std::make_unique<Turn>(device_.get(), std::move(held));
  had_alone_ |= kind == DeviceTurn::Kind::kAlone;
  if (kind == DeviceTurn::Kind::kAlone) {
    RETURN_IF_ERROR(ClearDevice());
    memory_->MakeRoom(tools_.pool);
  }
  RETURN_IF_ERROR(turn->HoldLane());
  CountWaiting(since);
  return turn;
}

absl::Status Judge::ClearDevice() {
  return warpsmith::ClearDevice([this] { return device_->AwaitIdle(); },
                                [this] { return device_->KillKeptCandidates(); }, tools_.pool);
}

absl::StatusOr<std::optional<Fault>> Judge::RunIn(Room room) {
  ASSIGN_OR_RETURN(Verified verified, Verify(room));
  if (verified.fault) return std::move(verified.fault);
  Conclude(v1::VERDICT_CORRECT, absl::StrCat("right on all ", grade().correctness().num_draws(), " draws"));
  if (room == Room::kEmptied) return std::nullopt;
  if (request_.verify_only) {
    NoteLibraries(room, task_->layout(), grade().mutable_timing());
    return std::nullopt;
  }
  tools_.pool->WantCompleted(pooled_);  // which is made meanwhile
  ASSIGN_OR_RETURN(std::optional<Fault> fault, PrepareCandidates(room, verified.takes_parameters));
  if (fault) return fault;
  RETURN_IF_ERROR(AwaitReference());
  ASSIGN_OR_RETURN(const std::unique_ptr<Turn> turn, PrepareTiming());
  const v1::Measurement before = measurement_;
  const absl::Time since = absl::Now(), lane_since = lane_since_;
  ASSIGN_OR_RETURN(fault, Time(room, verified.takes_parameters));
  // Who has seen a time of its own must not choose to be timed again.
  const auto may_be_timed_again = [&] {
    return fault && !has_timed_ && fault->verdict == v1::VERDICT_RUNTIME_ERROR;
  };
  if (may_be_timed_again() && memory_->IsExcused(*fault, since)) {
    measurement_ = before;
    lane_since_ = lane_since + (absl::Now() - since);
    ASSIGN_OR_RETURN(fault, Time(room, verified.takes_parameters));
  }
  if (may_be_timed_again()) RETURN_IF_ERROR(memory_->CheckTasks(*fault, *task_));
  return fault;
}

// Beside others, as it was verified. What may be their doing is seen again when the candidate is timed.
absl::StatusOr<std::optional<Fault>> Judge::PrepareCandidates(Room room, bool takes_parameters) {
  if (device_->turn() == nullptr || is_alone_) return std::nullopt;
  const absl::Time since = absl::Now();
  const v1::Measurement before = measurement_;
  const auto& draws = takes_parameters ? task_->verification_draws() : task_->construction_draws();
  const auto num_calls =
      takes_parameters ? device_->TimingOptions(task_->layout()).num_warm_ups : kWarmUpsWithoutParameters;
  const std::vector<const Draw*> warm_ups = WarmUps(draws, num_calls);
  const int num_processes = device_->EffortOf(request_.timing).num_instances_min;
  std::optional<Fault> fault;
  device_->AwaitSpare(*task_, room);
  {
    ASSIGN_OR_RETURN(const auto turn,
                     DeviceTurn::Take(device_->turn(), DeviceTurn::Kind::kShared, deadline_));
    fault = device_->PrepareCandidates(*task_, room, warm_ups, num_processes);
    if (fault && device_->MayBeOthersDoing(*fault, since)) {
      fault = std::nullopt;
      measurement_ = before;
    }
  }
  CountWaiting(since);
  return fault;
}

absl::StatusOr<Verified> Judge::Verify(Room room) {
  if (device_->turn() != nullptr && !is_alone_) {
    const v1::Measurement before = measurement_;
    ASSIGN_OR_RETURN(std::optional<Verified> verified, VerifyBesideOthers(room));
    if (verified) return *std::move(verified);
    is_alone_ = true;
    const double waited_seconds = grade().cost().lane_wait_seconds();
    measurement_ = before;
    grade().mutable_cost()->set_lane_wait_seconds(waited_seconds);
  }
  ASSIGN_OR_RETURN(const auto turn, TakeTurn(DeviceTurn::Kind::kAlone));
  const v1::Measurement before = measurement_;
  const absl::Time since = absl::Now(), lane_since = lane_since_;
  ASSIGN_OR_RETURN(Verified verified, VerifyNow(room, lane_since_, request_.limits.lane_seconds_max));
  verified.program.reset();  // and what it had of the memory
  if (verified.fault && memory_->IsExcused(*verified.fault, since)) {
    measurement_ = before;
    lane_since_ = lane_since + (absl::Now() - since);
    ASSIGN_OR_RETURN(verified, VerifyNow(room, lane_since_, request_.limits.lane_seconds_max));
    verified.program.reset();
  }
  if (verified.fault && !has_timed_) RETURN_IF_ERROR(memory_->CheckTasks(*verified.fault, *task_));
  return verified;
}

absl::StatusOr<std::optional<Verified>> Judge::VerifyBesideOthers(Room room) {
  const absl::Time waiting = absl::Now();
  device_->AwaitSpare(*task_, room);
  CountWaiting(waiting);
  ASSIGN_OR_RETURN(const auto turn, TakeTurn(DeviceTurn::Kind::kShared));
  const absl::Time since = absl::Now(), lane_since = lane_since_;
  const double seconds_max = std::min(request_.limits.lane_seconds_max, kBesideOthersSecondsMax);
  absl::StatusOr<Verified> verified = VerifyNow(room, since, seconds_max);
  lane_since_ = lane_since + (absl::Now() - since);
  if (verified.ok()) {
    if (verified->fault && !only_convicts_ && device_->MayBeOthersDoing(*verified->fault, since))
      return std::nullopt;
    // Its process, which has seen nothing that counts there, is timed, too, where a fresh one, which has seen nothing
    // at all, follows.
    std::unique_ptr<CheckedProgram> program = std::move(verified->program);
    const bool is_timed = !verified->fault && !request_.verify_only && verified->takes_parameters &&
                          device_->EffortOf(request_.timing).num_instances_min > 1;
    if (is_timed) device_->KeepVerified(std::move(program));
    return *std::move(verified);
  }
  // A process that does not start, or finds no memory: whoever is beside it may have all there is. It must not end the
  // referee under them. Time alone does not come back.
  if (absl::IsDeadlineExceeded(verified.status())) return verified.status();
  LogInfo(absl::StrCat("a candidate is verified alone, for beside others it could not be: ",
                       verified.status().ToString()));
  return std::nullopt;
}

absl::StatusOr<Verified> Judge::VerifyNow(Room room, absl::Time since, double seconds_max) {
  const TimerOptions timed = device_->TimingOptions(task_->layout());
  Verifier verifier(device_.get(),
                    {.room = room,
                     .lane_since = since,
                     .lane_seconds_max = seconds_max,
                     .repeats = timed.repeats,
                     .long_call_us = timed.long_call_us},
                    &measurement_);
  absl::StatusOr<Verified> verified = verifier.Run(*task_);
  grade().mutable_cost()->set_verify_seconds(Seconds(since));
  if (verified.ok()) {
    CountWaited(verified->waited);
    lane_since_ += verified->constructing;
  }
  return verified;
}

absl::Status Judge::AwaitReference() {
  const absl::Time waiting = absl::Now();
  RETURN_IF_ERROR(tools_.pool->AwaitCompleted(pooled_, deadline_));
  RETURN_IF_ERROR(PrepareReference());
  CountWaiting(waiting);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Judge::Turn>> Judge::PrepareTiming() {
  ASSIGN_OR_RETURN(auto turn, TakeTurn(DeviceTurn::Kind::kAlone));
  // Who has seen a time of its own, in the other room, is not judged again for that.
  if (!has_timed_) RETURN_IF_ERROR(memory_->CheckRoom(*task_, tools_.pool));
  const absl::Time preparing = absl::Now();
  RETURN_IF_ERROR(memory_->Try(*task_, [&] { return device_->PrepareTiming(*task_); }));
  CountWaiting(preparing);
  return turn;
}

absl::Status Judge::PrepareReference() {
  if (device_->turn() == nullptr) return device_->PrepareReference(*task_);
  const absl::Status status = PrepareReferenceIn(DeviceTurn::Kind::kShared);
  if (status.ok() || absl::IsDeadlineExceeded(status)) return status;
  return PrepareReferenceIn(DeviceTurn::Kind::kAlone);
}

absl::Status Judge::PrepareReferenceIn(DeviceTurn::Kind kind) {
  ASSIGN_OR_RETURN(const auto turn, DeviceTurn::Take(device_->turn(), kind, deadline_));
  if (kind == DeviceTurn::Kind::kShared) return device_->PrepareReference(*task_);
  had_alone_ = true;
  RETURN_IF_ERROR(ClearDevice());
  memory_->MakeRoom(tools_.pool);
  return memory_->Try(*task_, [&] { return device_->PrepareReference(*task_); });
}

absl::StatusOr<std::optional<Fault>> Judge::Time(Room room, bool takes_parameters) {
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(const std::unique_ptr<TimingDevice> sides,
                   device_->StartTiming(*task_, room, lane_since_));
  Timer timer(sides.get(), OptionsOf(takes_parameters));
  absl::StatusOr<std::optional<Fault>> timed = timer.Run();
  has_timed_ |= timer.has_timed();
  lane_since_ = absl::Now() - absl::Seconds(sides->LaneSeconds());  // its processes may have waited
  // A reference that fails may answer yet, to whoever asks next.
  if (absl::IsInvalidArgument(timed.status())) (void)task_->on_device().EndReference();
  RETURN_IF_ERROR(memory_->OfReference(timed.status()));  // the candidate is there, too
  std::optional<Fault> fault = *std::move(timed);
  grade().mutable_cost()->set_profile_seconds(timer.sampling_seconds());
  grade().mutable_cost()->set_time_seconds(Seconds(start) - timer.sampling_seconds());
  if (fault) return fault;
  v1::Timing& timing = *grade().mutable_timing();
  timing = timer.Timing();
  timing.set_parameters_fixed(!takes_parameters);
  NoteLibraries(room, task_->layout(), &timing);
  v1::Profile& profile = *grade().mutable_profile();
  profile = timer.Profile();
  device_->Describe(task_->layout(), &timing, &profile);
  AddLaunches(&timer, &profile);
  return std::nullopt;
}

void Judge::AddLaunches(Timer* timer, v1::Profile* profile) {
  const absl::Time start = absl::Now();
  const absl::StatusOr<v1::Profile> launches = timer->Launches();
  if (absl::IsUnimplemented(launches.status())) return;
  v1::Cost& cost = *grade().mutable_cost();
  cost.set_profile_seconds(cost.profile_seconds() + Seconds(start));
  if (launches.ok()) return profile->MergeFrom(*launches);
  device_in_doubt_ = true;
  // Words of the candidate, perhaps.
  LogInfo(absl::StrCat("what a candidate launches is not known: ",
                       Escape(std::string(launches.status().message()), kReasonBytesMax)));
}

TimerOptions Judge::OptionsOf(bool takes_parameters) const {
  TimerOptions options = device_->TimingOptions(task_->layout());
  options.effort = device_->EffortOf(request_.timing);
  options.lane_seconds_max = request_.limits.lane_seconds_max;
  options.input_sets = takes_parameters ? task_->timing_draws() : task_->construction_draws();
  if (!takes_parameters) {
    options.num_warm_ups = kWarmUpsWithoutParameters;
    return options;
  }
  for (const Draw* draw : task_->verification_draws()) {
    if (!draw->own_distribution) options.unusual_sets.push_back(draw);
  }
  return options;
}

void Judge::Convict(const Fault& fault) {
  Conclude(fault.verdict, fault.reason);
  grade().set_hack_family(fault.hack_family);
  measurement_.mutable_advice_facts()->set_input_mutated(fault.input_mutated);
  measurement_.mutable_advice_facts()->set_out_of_bounds(fault.out_of_bounds);
}

// The reason may hold words of candidate or task.
void Judge::Conclude(v1::Verdict verdict, std::string_view reason) {
  grade().set_verdict(verdict);
  grade().set_verdict_reason(Escape(reason, kReasonBytesMax));
}

}  // namespace warpsmith
