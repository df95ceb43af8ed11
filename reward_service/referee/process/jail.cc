#include "reward_service/referee/process/jail.h"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"
#include "reward_service/referee/process/cuda_error_text.h"
#include "reward_service/referee/process/guards.h"
#include "reward_service/referee/tensors/gpu_store.h"
#include "reward_service/referee/tensors/late_pairs.h"

namespace warpsmith {
namespace {

// A GPU takes some 120 us to go over to another process's work (one H100, one H200).
constexpr double kChangeOfHandsUsMin = 60;
constexpr double kUncountedStopUs = 100;
constexpr size_t kNumNativeSlots = jail::Run::slot.high + 1;

// For a reason: a limit that was given as a time is some microseconds less by now.
double RoundedSeconds(absl::Duration duration) {
  return std::round(absl::ToDoubleSeconds(duration) * 100) / 100;
}

}  // namespace

int NumRooms(int calls_max) { return calls_max > 1 ? calls_max + 1 : 1; }

absl::StatusOr<Buffers> MakeBuffers(TensorStore& store, const TaskLayout& layout, CandidateKind kind,
                                    int calls_max, std::shared_ptr<TensorMemory> inputs) {
  const int num_rooms = NumRooms(calls_max);
  Buffers buffers{.store = &store, .inputs = std::move(inputs), .num_rooms = num_rooms};
  if (buffers.inputs == nullptr) {
    ASSIGN_OR_RETURN(buffers.inputs, store.Make(num_rooms * layout.input_buffer_bytes));
  }
  while (kind == CandidateKind::kNative && buffers.outputs.size() < kNumNativeSlots) {
    ASSIGN_OR_RETURN(auto memory, store.Make(num_rooms * layout.output_buffer_bytes));
    buffers.outputs.push_back(std::move(memory));
  }
  return buffers;
}

absl::StatusOr<std::optional<Fault>> Jail::Begin(const Program& program, const Lane* lane) {
  const absl::Time since = absl::Now();
  const absl::Time deadline = std::min(program.deadline, since + absl::Seconds(limits_.cpu_seconds_max + 5));
  RETURN_IF_ERROR(process_->AwaitHello(deadline));
  if (lane != nullptr) RETURN_IF_ERROR(lane->Admit(process_->pid()));
  // Nothing that another jail has left must be found here.
  buffers_.inputs->FillAll(0);
  for (const auto& buffer : buffers_.outputs) {
    buffer->FillAll(kPoisonByte);
    for (const size_t room : rooms_) {
      ForEachGuard(layout_, [&](int64_t start, int64_t end) {
        buffer->Fill(kGuardByte, OutputRoom(room) + start, end - start);
      });
    }
  }
  if (program.construction != nullptr) {
    buffers_.inputs->Write(program.construction->inputs, InputEnd(), InputEnd(),
                           layout_.input_buffer_bytes - InputEnd());
  }
  using Message = jail::Begin;
  auto fields = Make<Message>({{Message::inputs, ToJson(layout_.inputs)},
                               {Message::parameters, ToJson(layout_.parameters)},
                               {Message::outputs, ToJson(layout_.outputs)},
                               {Message::input_bytes, layout_.input_buffer_bytes},
                               {Message::output_bytes, layout_.output_buffer_bytes},
                               {Message::num_rooms, buffers_.num_rooms},
                               {Message::num_threads, program.num_threads},
                               {Message::withhold, program.withhold}});
  std::vector<int> descriptors;
  if (program.kind == CandidateKind::kNative) {
    descriptors = {program.library_fd, buffers_.inputs->read_only_fd()};
    for (const auto& buffer : buffers_.outputs) descriptors.push_back(buffer->fd());
  } else {
    fields[Message::entry.name] = program.entry;
    fields[Message::form.name] = program.form;
    fields[Message::init_inputs.name] = program.init_inputs;
    fields[Message::construction_seed.name] = program.construction_seed;
    descriptors = {program.source_fd, buffers_.inputs->fd()};
    descriptors.insert(descriptors.end(), program.extension_fds.begin(), program.extension_fds.end());
  }
  if (on_gpu()) {
    ASSIGN_OR_RETURN(line_, StartLine::Create());
    descriptors.insert(program.kind == CandidateKind::kNative ? descriptors.end() : descriptors.begin() + 2,
                       line_->fd());
  }
  buffers_.store->Settle();
  const absl::StatusOr<Packet> answer = process_->Ask(fields, descriptors, deadline);
  if (!answer.ok()) return FaultOf(answer.status(), RoundedSeconds(deadline - since));
  if (!Is<jail::Ready>(answer->fields)) return FaultOfAnswer(*answer);
  parameters_loaded_ = Read(answer->fields, jail::Ready::parameters_loaded);
  if (absl::Status status = process_->Stop(); !status.ok()) return FaultOf(status);
  return program.withhold ? CheckCode() : std::nullopt;
}

// The program may have kept the jail from withholding anything.
std::optional<Fault> Jail::CheckCode() const {
  const absl::Status status = process_->CheckCode();
  if (status.ok()) return std::nullopt;
  Fault fault{v1::VERDICT_HACK, absl::StrCat("code is there that is withheld: ", status.message())};
  fault.hack_family = kWithheldCodeFamily;
  return fault;
}

int64_t Jail::InputEnd() const {
  return layout_.parameters.empty() ? layout_.input_buffer_bytes : layout_.parameters[0].offset;
}

void Jail::Load(Batch draws) {
  WS_CHECK(draws.size() <= static_cast<size_t>(buffers_.calls_max())) << draws.size();
  num_calls_ = draws.size();
  std::shuffle(rooms_.begin() + (KeepsFirstRoom() ? 1 : 0), rooms_.end(), random_);
  if (!buffers_.outputs.empty()) slot_ = (slot_ + 1) % buffers_.outputs.size();
  poison_lot_ = random_();
  std::vector<TensorCopy> copies;
  for (size_t call = 0; call < num_calls_; ++call) {
    draws[call]->shown = true;
    // Parameters, too: whoever runs here may have changed them.
    copies.push_back({&draws[call]->inputs, InputStart(call), layout_.input_buffer_bytes,
                      is_alone() ? DrawLatePairs(layout_, random_) : std::vector<LatePair>()});
  }
  buffers_.store->Copy(copies, buffers_.inputs.get());
  for (const size_t room : rooms_) {
    if (buffers_.outputs.empty()) break;
    for (const TensorSpec& spec : layout_.outputs)
      buffers_.outputs[slot_]->Fill(PoisonByteOf(spec, poison_lot_), OutputRoom(room) + spec.offset,
                                    spec.num_bytes);
  }
  ahead_us_ = buffers_.store->AwaitDone(limits_.call_seconds_max);
  buffers_.store->MakeCold();
}

std::optional<Fault> Jail::Refresh() {
  const absl::StatusOr<TimedAnswer> answer =
      process_->AskOnTheClock(Make<jail::Refresh>(), absl::Seconds(limits_.call_seconds_max));
  if (!answer.ok()) return FaultOf(answer.status());
  if (!Is<jail::Done>(answer->answer.fields)) return FaultOfAnswer(answer->answer);
  return std::nullopt;
}

std::optional<Fault> Jail::Run() {
  if (!ahead_us_.ok()) return FaultOfStore(ahead_us_.status());
  CloseForeign();
  const std::vector<size_t> rooms(rooms_.begin(), rooms_.begin() + static_cast<ptrdiff_t>(num_calls_));
  const auto request = Make<jail::Run>({{jail::Run::slot, slot_}, {jail::Run::rooms, rooms}});
  buffers_.store->Settle();
  const auto await_done = [this] { return buffers_.store->AwaitDone(limits_.call_seconds_max); };
  // A program can answer while the GPU works. What ends until its process has stopped would be seen by nobody.
  absl::StatusOr<double> left_us = 0.0;
  const auto before_stop = [&] { left_us = await_done(); };
  busy_us_ = 0.0;
  absl::StatusOr<TimedAnswer> timed =
      is_alone() ? RunAtLine(rooms, before_stop)
                 : process_->AskOnTheClock(request, absl::Seconds(limits_.call_seconds_max), before_stop);
  if (!timed.ok()) return FaultOf(timed.status());
  if (!left_us.ok()) return FaultOfStore(left_us.status());
  if (!busy_us_.ok()) return FaultOfStore(busy_us_.status());
  const absl::StatusOr<double> longer_us = await_done();
  if (!longer_us.ok()) return FaultOfStore(longer_us.status());
  // A native program answers while the GPU is proven idle. What it does on the host until it answers is no stop.
  const bool is_native = !buffers_.outputs.empty();
  seconds_ = timed->seconds + (is_native ? timed->answer_seconds : 0);
  after_seconds_ = (*ahead_us_ + *busy_us_ + *left_us) * 1e-6 + timed->late_seconds;
  double stop_seconds = timed->stop_seconds + (is_native ? 0 : timed->answer_seconds) + *longer_us * 1e-6;
  // The GPU changes hands in no less than that: what was sooner left it with the referee since before the stop, and
  // with no work of the program's, which had no time for any.
  if (on_gpu() && *longer_us < kChangeOfHandsUsMin) {
    stop_seconds = std::max(0.0, stop_seconds - kUncountedStopUs * 1e-6);
  }
  (buffers_.store->on_gpu() ? after_seconds_ : seconds_) += stop_seconds;
  const nlohmann::json& fields = timed->answer.fields;
  if (!Is<jail::Done>(fields)) return FaultOfAnswer(timed->answer);
  waited_us_ = static_cast<double>(Read(fields, jail::Done::waited_us));
  steady_us_ = Read(fields, jail::Done::steady_us);
  if (const int64_t result = Read(fields, jail::Done::result); result != 0)
    return Fault{
        v1::VERDICT_RUNTIME_ERROR,
        absl::StrCat("run() returned ", result, buffers_.store->on_gpu() ? CudaErrorText(result) : "")};
  if (buffers_.outputs.empty()) {
    former_places_ = std::move(places_);
    const nlohmann::json* const places = Find(fields, jail::Done::outputs);
    places_ = places != nullptr ? *places : nlohmann::json::array();
    if (const size_t expected = layout_.outputs.size() * num_calls_; places_.size() != expected) {
      return Fault{v1::VERDICT_WRONG_SHAPE,
                   absl::StrCat(places_.size(), " output tensors, expected ", expected)};
    }
    if (on_gpu()) NoteReturned();
  }
  return std::nullopt;
}

bool Jail::is_alone() const {
  if (line_ == nullptr) return false;
  const DeviceTurn* const turn = buffers_.store->turn();
  return turn == nullptr || !turn->is_shared();
}

// Continued, a process could have the GPU begin with what is loaded, before the clock starts. So the GPU has work of
// the referee's until the process waits: anybody else's in between makes that longer.
absl::StatusOr<TimedAnswer> Jail::RunAtLine(const std::vector<size_t>& rooms,
                                            absl::FunctionRef<void()> before_stop) {
  const auto request = Make<jail::Run>({{jail::Run::slot, slot_},
                                        {jail::Run::rooms, nlohmann::json::array()},
                                        {jail::Run::number, line_->Next()},
                                        {jail::Run::steady, tells_steady_}});
  buffers_.store->Occupy();
  LineSteps steps;
  steps.occupied = [this] { busy_us_ = buffers_.store->AwaitOccupied(); };
  steps.before_start = [this] {
    AddBusy(buffers_.store->AwaitDone(limits_.call_seconds_max));
    AddBusy(buffers_.store->GiveLateWords());
  };
  // While the driver recovers from a fault, a GPU computes for nobody; the program is told of its fault after that. A
  // GPU that never computes again keeps the referee, as in any other use, until the service ends it.
  steps.overtime = [this] {
    const absl::Time since = absl::Now();
    (void)buffers_.store->AwaitDone(0);
    return std::min(absl::Now() - since, absl::Seconds(kRecoverySeconds));
  };
  steps.before_stop = before_stop;
  return process_->StartOnTheClock(request, absl::Seconds(limits_.call_seconds_max), line_.get(), rooms,
                                   steps);
}

// What waited for the end of the occupation began then, before the clock.
void Jail::AddBusy(const absl::StatusOr<double>& behind_us) {
  if (busy_us_.ok() && *busy_us_ < kChangeOfHandsUsMin) busy_us_ = 0.0;
  if (!busy_us_.ok()) return;
  if (!behind_us.ok()) {
    busy_us_ = behind_us.status();
  } else if (*behind_us >= kChangeOfHandsUsMin) {
    *busy_us_ += *behind_us;
  }
}

absl::StatusOr<const void*> Jail::Output(size_t index, Fault& fault, size_t call) {
  if (buffers_.outputs.empty()) return ReadPythonOutput(places_, call, index, fault);
  const TensorSpec& spec = layout_.outputs[index];
  return buffers_.outputs[slot_]->Read(OutputStart(call) + spec.offset, spec.num_bytes);
}

absl::StatusOr<Comparison> Jail::CompareInPlace(size_t index, const Draw& draw, size_t call) {
  const TensorSpec& spec = layout_.outputs[index];
  if (buffers_.outputs.empty()) return ComparePlace(places_, index, draw, call);
  return buffers_.store->CompareInPlace({spec, draw.tolerances[index], draw.expected},
                                        *buffers_.outputs[slot_], OutputStart(call) + spec.offset);
}

Buffers Jail::TakeBuffers() {
  CloseForeign();
  process_.reset();
  return std::move(buffers_);
}

// A status of the channel as a fact about the program: what else could have broken it?
Fault Jail::FaultOf(const absl::Status& status, double seconds_max) {
  if (absl::IsDeadlineExceeded(status)) {
    return {v1::VERDICT_TIMEOUT, absl::StrCat("no result after ", seconds_max, " s")};
  }
  if (absl::IsInvalidArgument(status)) {
    return {v1::VERDICT_RUNTIME_ERROR, absl::StrCat("the program broke its channel: ", status.message())};
  }
  // Its crash may have been told behind an answer.
  const absl::StatusOr<Packet> told = process_->Receive(absl::Now());
  if (told.ok() && Is<jail::Crash>(told->fields)) return FaultOfAnswer(*told);
  const Ending ending = process_->AwaitEnd();
  if (UsedUp(ending, limits_.cpu_seconds_max)) {
    return {v1::VERDICT_TIMEOUT, absl::StrCat("used up ", limits_.cpu_seconds_max, " s of CPU time")};
  }
  Fault fault{v1::VERDICT_RUNTIME_ERROR,
              absl::StrCat("the program ", DescribeEnding(ending), " before its result")};
  fault.killed = ending.signal == SIGKILL;
  return fault;
}

// Work without end is the program's. What else fails there is the referee's own use of the GPU: the store keeps it, and
// the judgement ends with that instead of this.
Fault Jail::FaultOfStore(const absl::Status& status) const {
  if (absl::IsDeadlineExceeded(status)) {
    return {v1::VERDICT_TIMEOUT, absl::StrCat("the GPU still worked after ", limits_.call_seconds_max, " s")};
  }
  return {v1::VERDICT_RUNTIME_ERROR, absl::StrCat("the GPU failed beside the program: ", status.message())};
}

Fault Jail::FaultOfAnswer(const Packet& packet) {
  using jail::Crash;
  if (!Is<Crash>(packet.fields)) {
    const std::string text = Read(packet.fields, jail::Failed::error);
    return {v1::VERDICT_RUNTIME_ERROR,
            Escape(text.empty() ? "the program answered out of turn" : text, jail::Failed::error.bytes_max)};
  }
  const int signal = static_cast<int>(Read(packet.fields, Crash::signal));
  Fault fault{v1::VERDICT_RUNTIME_ERROR, absl::StrCat("crashed: ", strsignal(signal))};
  if (Read(packet.fields, Crash::withheld)) {
    fault.reason = "used a library's code that is withheld here";
    fault.withheld = true;
    return fault;
  }
  const std::string buffer = Read(packet.fields, Crash::buffer);
  if (buffer != Crash::kInput && buffer != Crash::kOutput) return fault;
  const int64_t offset = Read(packet.fields, Crash::offset);
  const int64_t num_bytes = Read(packet.fields, Crash::bytes);
  if (buffer == Crash::kInput && offset >= 0 && offset < num_bytes) {
    fault = {v1::VERDICT_INCORRECT, "the program wrote to an input"};
    fault.input_mutated = true;
    return fault;
  }
  fault.out_of_bounds = true;
  absl::StrAppend(&fault.reason,
                  offset < 0 ? absl::StrCat(", ", -offset, " bytes before")
                             : absl::StrCat(", ", offset - num_bytes, " bytes behind"),
                  " the ", buffer, " buffer");
  return fault;
}

}  // namespace warpsmith
