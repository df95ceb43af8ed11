// The oracle of a task: its start, its answers, its end.
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/memory_file.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/process/fault.h"
#include "reward_service/referee/task/prepared_task.h"
#include "reward_service/referee/task/room_on_device.h"

namespace warpsmith {
namespace {

// That an oracle constructs: to be called, in float64, and of another seed where plain attributes are weights.
constexpr int kModelsMax = 3;

// As the device says, but processes that wait there end before it gives up.
absl::Status AwaitIdleAlone(TaskOnDevice* device, TaskOnDevice::Behind what) {
  absl::Status idle = device->AwaitIdle(what);
  if (absl::IsDeadlineExceeded(idle) && device->EndWaiting()) idle = device->AwaitIdle(what);
  return idle;
}

// What a reference says that found no memory; empty of others.
std::string WantOfMemory(const std::vector<Packet>& answers) {
  for (const Packet& answer : answers) {
    if (!Is<oracle::Failed>(answer.fields)) continue;
    std::string error = Read(answer.fields, oracle::Failed::error);
    if (SaysWantOfMemory(error)) return error;
  }
  return "";
}

// Whether its answer says how exact a candidate has to be.
bool SetsTolerances(const nlohmann::json& request) {
  return Is<oracle::Load>(request) || (Is<oracle::Draw>(request) && Read(request, oracle::Draw::exact));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceTurn::Held>> PreparedTask::TakeTurn() {
  ASSIGN_OR_RETURN(auto turn, turns_.Take());
  step_deadline_ += turn->waited();
  return turn;
}

absl::Status PreparedTask::SeeAloneIfItFails(absl::FunctionRef<absl::Status()> work) {
  const auto begin_anew = [this] {
    CloseOracle();
    BeginStep();
  };
  // Want of memory is an exception of Torch's, which is none of these words.
  const auto is_certain = [this] { return says_invalid_ || (are_draws_on_host() && !may_use_host_); };
  says_invalid_ = false;
  has_made_room_ = false;
  const absl::Status status = turns_.SeeAloneIfItFails(work, begin_anew, is_certain);
  if (!absl::IsResourceExhausted(status) || !has_made_room_) return status;
  begin_anew();
  return turns_.SeeAloneIfItFails(work, begin_anew, is_certain);
}

absl::StatusOr<std::vector<Packet>> PreparedTask::AskOracle(const std::vector<nlohmann::json>& requests,
                                                            const std::vector<int>& descriptors,
                                                            Ending* ending) {
  using Behind = TaskOnDevice::Behind;
  const bool is_alone = on_device_->turn() != nullptr && !turns_.has_shared();
  // What others have left there is not this one's fault.
  if (is_alone && absl::IsDeadlineExceeded(AwaitIdleAlone(on_device_.get(), Behind::kKilled))) {
    oracle_.reset();
    return absl::ResourceExhaustedError("another process keeps the GPU busy");
  }
  const bool sets_tolerances = std::any_of(requests.begin(), requests.end(), SetsTolerances);
  if (sets_tolerances && turns_.IsAlone() && !on_device_->HasPlenty()) (void)on_device_->EndWaiting();
  std::vector<Packet> answers;
  absl::Status status;
  const absl::Time since = absl::Now();
  for (const nlohmann::json& request : requests) {
    absl::StatusOr<Packet> answer = oracle_->Ask(request, descriptors, AnswerDeadline());
    status = answer.status();
    if (!answer.ok()) break;
    says_invalid_ |= Is<oracle::Invalid>(answer->fields);
    answers.push_back(*std::move(answer));
  }
  if (absl::IsUnavailable(status)) {
    const Ending ended = oracle_->AwaitEnd();
    if (ending != nullptr) *ending = ended;
    if (ended.signal == SIGKILL && !UsedUp(ended, started_cpu_seconds_max_)) {
      oracle_.reset();
      return absl::ResourceExhaustedError("the oracle was killed: the host may lack memory");
    }
  }
  // Torch takes other algorithms then, without a word, and they round otherwise than a candidate that has memory.
  if (!turns_.IsAlone() && status.ok() && !says_invalid_ && sets_tolerances &&
      on_device_->WasScarceSince(since)) {
    status = absl::ResourceExhaustedError("memory was scarce");
  }
  if (turns_.has_shared() && !status.ok()) oracle_.reset();
  if (is_alone && !(status.ok() && AwaitIdleAlone(on_device_.get(), Behind::kAnswer).ok())) {
    oracle_.reset();
    const absl::Status idle =
        on_device_->AwaitIdle(Behind::kKilled);  // or whoever has the next turn finds out
    // What goes on without the oracle is another's.
    if (status.ok() && absl::IsDeadlineExceeded(idle))
      return absl::ResourceExhaustedError("another process keeps the GPU busy");
    if (status.ok()) return TaskAtFault("the reference leaves work on the GPU behind");
  }
  RETURN_IF_ERROR(status);
  // Most who have memory give it up in turns of theirs: only now it shows whether they had what was wanting.
  if (const std::string wanted = WantOfMemory(answers); is_alone && !says_invalid_ && !wanted.empty()) {
    oracle_.reset();
    if (owner_ != nullptr) owner_->oracle_.reset();
    if (IsCrowded()) {
      // Candidates that wait to be timed may keep it, one of this task, too, and its own reference.
      has_made_room_ |= on_device_->EndWaiting();
      has_made_room_ |= on_device_->EndReference();
      return absl::ResourceExhaustedError(TaskAtFault(wanted).message());
    }
  }
  return answers;
}

absl::StatusOr<std::unique_ptr<ChildProcess>> PreparedTask::StartOracle() {
  const double constructing =
      kModelsMax * absl::ToDoubleSeconds(layout_.construction) * static_cast<double>(num_threads_);
  started_cpu_seconds_max_ = limits_.oracle_cpu_seconds_max + static_cast<int>(std::ceil(constructing));
  ASSIGN_OR_RETURN(auto oracle, parent_->Fork({.role = zygote::Fork::kOracle,
                                               .memory_bytes_max = limits_.oracle_memory_bytes_max,
                                               .cpu_seconds_max = started_cpu_seconds_max_,
                                               .num_threads = num_threads_,
                                               .gpu = on_device_->turn() != nullptr}));
  RETURN_IF_ERROR(oracle->AwaitHello(absl::Now() + limits_.answer_time_max));
  return oracle;
}

absl::StatusOr<Packet> PreparedTask::LoadOracle(TaskLayout* layout) {
  // Made once: whoever times the reference has its descriptor.
  if (!source_fd_.valid()) {
    ASSIGN_OR_RETURN(source_fd_, SealedMemoryFile(source_.reference_source));
  }
  // Beside whoever has the turn, as spare jails start: a context takes long, and nobody's code runs yet. Who has the
  // turn may also have all memory of the device.
  absl::StatusOr<std::unique_ptr<ChildProcess>> started = StartOracle();
  turns_.Begin();
  ASSIGN_OR_RETURN(const auto turn, TakeTurn());
  oracle_ended_ = false;
  if (!started.ok() && on_device_->turn() != nullptr) {
    RoomOnDevice room(on_device_.get(), step_deadline_);
    do started = StartOracle();
    while (!started.ok() && room.MayBeThere(started.status()));
  }
  ASSIGN_OR_RETURN(oracle_, std::move(started));
  if (construction_seed_ == 0) construction_seed_ = NextSeed() | 1;
  auto request = Make<oracle::Load>({{oracle::Load::construction_seed, construction_seed_},
                                     {oracle::Load::beside_others, turns_.has_shared()}});
  if (other_inputs_) request[oracle::Load::other_inputs.name] = *other_inputs_;
  Ending ending;
  absl::StatusOr<std::vector<Packet>> answers = AskOracle({request}, {source_fd_.get()}, &ending);
  if (absl::IsInvalidArgument(answers.status()) || absl::IsResourceExhausted(answers.status()))
    return answers.status();
  if (!answers.ok()) {
    const bool endless =
        absl::IsDeadlineExceeded(answers.status()) || UsedUp(ending, started_cpu_seconds_max_);
    return TaskAtFault(
        endless ? absl::StrCat("the reference does not end in ",
                               absl::FormatDuration(std::min(limits_.answer_time_max, limits_.step_time_max)),
                               " or ", started_cpu_seconds_max_, " s of CPU time")
                : absl::StrCat("the reference ", DescribeEnding(ending)));
  }
  Packet& answer = answers->front();
  if (!Is<oracle::Loaded>(answer.fields)) {
    std::string error = Read(answer.fields, oracle::Failed::error);
    if (absl::StrContains(error, "DefaultCPUAllocator"))  // of Torch, on the host
      absl::StrAppend(&error, "; an oracle may have ", limits_.oracle_memory_bytes_max >> 20,
                      " MiB of the host's memory");
    return TaskAtFault(error.empty() ? "the reference crashed" : error);
  }
  if (layout != nullptr) {
    absl::StatusOr<TaskLayout> made = MakeLayout(answer.fields, limits_.buffer_bytes_max);
    says_invalid_ |= !made.ok();
    ASSIGN_OR_RETURN(*layout, std::move(made));
    kept_in_ = KeptIn::kDevice;
    absl::Status fits = CheckBytes();
    if (!fits.ok()) {
      kept_in_ = KeptIn::kHost;
      fits = CheckBytes();
      // Its oracle needs a part of the device's memory that others seldom leave.
      turns_.StayAlone();
    }
    says_invalid_ |= !fits.ok();
    RETURN_IF_ERROR(fits);
    if (are_draws_on_host() && !may_use_host_) return absl::CancelledError("its draws would lie on the host");
  }
  RETURN_IF_ERROR(OpenWindow());
  return std::move(answer);
}

void PreparedTask::CloseOracle() {
  // The end of a context is work for a GPU, too. It ends without a turn that does not come.
  const auto turn = TakeTurn();
  if (!turn.ok()) LogWarning(turn.status().ToString());
  oracle_.reset();
  input_window_.reset();
  expected_window_.reset();
}

void PreparedTask::EndProcesses() {
  (void)on_device_->EndReference();
  {
    absl::MutexLock lock(&in_making_mutex_);
    if (in_making_ != nullptr) in_making_->EndProcesses();
  }
  if (oracle_ == nullptr) return;
  turns_.Suspect();
  oracle_ended_ = true;
  kill(oracle_->pid(), SIGKILL);
}

absl::Status PreparedTask::RenewOracle() {
  // It might not end its next draws.
  const auto is_worn = [this] {
    return oracle_->cpu_seconds() >= started_cpu_seconds_max_ - limits_.oracle_cpu_seconds_max / 2;
  };
  if (oracle_ != nullptr && (oracle_ended_ || is_worn())) CloseOracle();
  if (oracle_ != nullptr) return absl::OkStatus();
  return LoadOracle(/*layout=*/nullptr).status();
}

absl::Status PreparedTask::OpenWindow() {
  TensorStore& store = on_device_->store();
  const int num_slots = num_batched_calls();
  ASSIGN_OR_RETURN(input_window_, store.Make(num_slots * layout_.input_buffer_bytes));
  ASSIGN_OR_RETURN(expected_window_, store.Make(num_slots * layout_.exact_output_bytes()));
  using oracle::Window;
  const auto request = Make<Window>({{Window::input_offsets, Offsets(layout_, false)},
                                     {Window::output_offsets, Offsets(layout_, true)},
                                     {Window::input_bytes, layout_.input_buffer_bytes},
                                     {Window::output_bytes, layout_.exact_output_bytes()},
                                     {Window::num_slots, num_slots}});
  const auto answers = AskOracle({request}, {input_window_->fd(), expected_window_->fd()});
  if (absl::IsResourceExhausted(answers.status())) return answers.status();
  if (!answers.ok()) return TaskAtFault("the reference crashed or does not end after its first call");
  const nlohmann::json& answer = answers->front().fields;
  return Is<oracle::Open>(answer) ? absl::OkStatus() : TaskAtFault(Read(answer, oracle::Failed::error));
}

}  // namespace warpsmith
