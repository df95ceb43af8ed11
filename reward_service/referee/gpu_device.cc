#include "reward_service/referee/gpu_device.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/lane_task.h"
#include "reward_service/referee/timing_plan.h"

namespace warpsmith {
namespace {

// Outputs may end in the GPU's cache, which takes several times what its memory does: nobody is accused who left them
// there.
constexpr double kCacheFactor = 4;
// So that no luck of one process is taken for the program's.
constexpr int kInstancesMin = 2;
// Of all processes that are made ready ahead, where each takes a third of a second at most.
constexpr absl::Duration kOpeningTimeMax = absl::Seconds(10);
// Of the reference's time, what it may pay for copies of its parameters where a native program pays for none: less than
// what no speed-up is told from 1 by.
constexpr double kUnsharedCopyShareMax = 0.02;
constexpr double kCopyUs = 3;  // of one, however short
// Without one of these words nothing that a Python program brings reaches a GPU as a kernel. A program that hides them
// is taken for one that has none.
constexpr std::string_view kWaysToKernels[] = {"load_inline", "cpp_extension", "triton",
                                               "ctypes",      "jiterator",     "compile_kernel"};
constexpr char kNoTime[] = "this request had no time left to measure it";
constexpr char kNotThisTime[] = "not measured this time, but the next: ";

// Whether copying the parameters between the reference's calls takes next to nothing of their time.
bool CopiesAreSmall(const TaskLayout& layout, const RefereeFacts& facts) {
  if (layout.parameters.empty()) return true;
  const auto bytes = static_cast<double>(layout.input_buffer_bytes - layout.parameters.front().offset);
  const double bytes_per_us = facts.gigabytes_per_second_ceiling * 1e3;
  const double us = kCopyUs * static_cast<double>(layout.parameters.size()) + 2 * bytes / bytes_per_us;
  return us <= kUnsharedCopyShareMax * static_cast<double>(layout.reference_us);
}

}  // namespace

absl::StatusOr<std::unique_ptr<JudgingDevice>> GpuDevice::Open(const LaneTools& tools, GpuStore* store,
                                                               const Judgement& judgement) {
  ASSIGN_OR_RETURN(auto host, CpuDevice::Open(tools, judgement));
  return absl::WrapUnique(new GpuDevice(tools, store, judgement, std::move(host)));
}

absl::StatusOr<StartedProgram> GpuDevice::StartCandidate(PreparedTask& task, Room room) {
  return host_->StartCandidate(task, room);
}

std::vector<Room> GpuDevice::Rooms(const TaskLayout& layout) const {
  const JudgeRequest& request = judgement_.request;
  std::vector<Room> rooms = host_->Rooms(layout);
  if (rooms.back() == Room::kOpen && !request.with_torch) rooms.insert(rooms.end() - 1, Room::kEmptied);
  const bool has_way =
      is_native_ || !request.extension_fds.empty() ||
      std::any_of(std::begin(kWaysToKernels), std::end(kWaysToKernels),
                  [&](const auto& word) { return request.source.find(word) != std::string::npos; });
  if (!has_way && rooms.front() == Room::kSealed) return {Room::kEmptied};
  // Kernels that it makes when it runs cannot be emptied.
  if (has_way && rooms.back() == Room::kEmptied) rooms.back() = Room::kOpen;
  return rooms;
}

void GpuDevice::LeaveLane() {
  if (const absl::Status status = tools_.lane->Leave(); !status.ok()) LogWarning(status.ToString());
}

bool GpuDevice::MayBeOthersDoing(const Fault& fault, absl::Time since) {
  const bool says_so = SaysWantOfMemory(fault.reason);
  // Whoever else failed meanwhile may have lacked it, too. Words alone show nothing.
  if (says_so && !store_->HasPlenty()) store_->NoteScarcity();
  return says_so || SaysDeviceFailed(fault.reason) || fault.killed || fault.verdict == v1::VERDICT_TIMEOUT ||
         store_->WasScarceSince(since);
}

void GpuDevice::AwaitSpares() {
  const absl::Time deadline = std::min(judgement_.deadline, absl::Now() + kOpeningTimeMax);
  std::vector<Zygote*> zygotes = {tools_.native_zygote, tools_.python_zygote};
  for (LateZygote* const late : {tools_.native_zygote_with_blas, tools_.python_zygote_with_products}) {
    if (late != nullptr) zygotes.push_back(late->started());
  }
  for (Zygote* const zygote : zygotes) {
    if (zygote != nullptr) zygote->AwaitSpares(deadline);
  }
}

absl::Status GpuDevice::PrepareReference(PreparedTask& task) {
  RETURN_IF_ERROR(LaneTask::Of(task).AwaitReference(task));
  AwaitSpares();
  return absl::OkStatus();
}

void GpuDevice::KeepVerified(std::unique_ptr<CheckedProgram> program) {
  if (store_->HasPlenty()) host_->KeepVerified(std::move(program));
}

std::optional<Fault> GpuDevice::PrepareCandidates(PreparedTask& task, Room room, Batch warm_ups, int num) {
  return host_->PrepareCandidates(task, room, warm_ups, num);
}

absl::Status GpuDevice::PrepareTiming(PreparedTask& task) {
  // Which may have ended since it was made ready, as all do where somebody has left work.
  RETURN_IF_ERROR(LaneTask::Of(task).AwaitReference(task));
  AwaitSpares();  // those that others have asked for since
  forms_.clear();
  for (const std::string& key : judgement_.request.timing.baselines) {
    const ReferenceForm* const form = FindReferenceForm(key);
    if (form == nullptr) return absl::InternalError(absl::StrCat("the service asks for a baseline ", key));
    ASSIGN_OR_RETURN(FormTime time, MeasureOnce(*form, task));
    forms_.emplace_back(form, std::move(time));
  }
  return absl::OkStatus();
}

absl::StatusOr<FormTime> GpuDevice::MeasureOnce(const ReferenceForm& form, PreparedTask& task) {
  LaneTask& kept = LaneTask::Of(task);
  const std::string key(form.key);
  const absl::Duration for_candidate = absl::Seconds(judgement_.request.limits.lane_seconds_max);
  if (const auto known = kept.form_times().find(key); known != kept.form_times().end()) return known->second;
  if (absl::Now() + MeasureTimeMax(form) + for_candidate >= judgement_.deadline) return Unavailable(kNoTime);
  absl::StatusOr<FormTime> time;
  {
    ASSIGN_OR_RETURN(const auto eager, host_->StartTiming(task, Room::kSealed, absl::Now()));
    TimerOptions options = TimingOptions(task.layout());
    options.batch_calls_max = static_cast<size_t>(BatchedCallsMax(*store_, task.layout(), tools_.facts));
    options.input_sets = task.timing_draws();
    time = MeasureForm(form, task, *tools_.lane, eager.get(), options);
  }
  if (absl::IsInvalidArgument(time.status())) {
    // Alone it did not fail: for want of memory, say. The task is not at fault, and its process is of no use any more.
    time = Unavailable(std::string(time.status().message()));
    kept.baselines().clear();
    RETURN_IF_ERROR(kept.AwaitReference(task));
  }
  if (IsPassing(time.status())) return Unavailable(absl::StrCat(kNotThisTime, time.status().message()));
  RETURN_IF_ERROR(time.status());
  return kept.form_times()[key] = *std::move(time);
}

absl::StatusOr<std::unique_ptr<TimingDevice>> GpuDevice::StartTiming(PreparedTask& task, Room room,
                                                                     absl::Time lane_since) {
  return host_->StartTiming(task, room, lane_since);
}

absl::Status GpuDevice::AwaitIdle() { return store_->AwaitDone(kRecoverySeconds).status(); }

TimerOptions GpuDevice::TimingOptions(const TaskLayout& layout) const {
  TimerOptions options;
  options.num_warm_ups = kWarmUpDraws;
  options.can_sample = false;
  options.path.cold = true;
  // The reference has the copies of its parameters on its clock, and a native program has none.
  const bool alone = is_native_ && !CopiesAreSmall(layout, tools_.facts);
  options.batch_calls_max = alone ? 1 : static_cast<size_t>(BatchedCallsMax(*store_, layout, tools_.facts));
  options.path.takes_between_off = is_native_;
  const double bytes_per_us = tools_.facts.gigabytes_per_second_ceiling * 1e3 * kCacheFactor;
  options.least_us = bytes_per_us > 0 ? static_cast<double>(layout.own_output_bytes()) / bytes_per_us : 0;
  if (!is_native_ && bytes_per_us > 0) {
    options.own_output_bytes = layout.own_output_bytes();
    options.clear_us = kCacheFactor * options.least_us;
  }
  options.long_call_us = kLongCallFactor * tools_.facts.empty_call_us;
  return options;
}

TimingEffort GpuDevice::EffortOf(const TimingEffort& asked) const {
  TimingEffort effort = asked;
  effort.num_instances_min = std::min(asked.num_instances_min, kInstancesMin);
  return effort;
}

void GpuDevice::Describe(const TaskLayout& layout, v1::Timing* timing, v1::Profile* profile) const {
  host_->Describe(layout, timing, profile);  // by the facts of a lane, here those of the GPU's memory
  for (const auto& [form, time] : forms_) {
    *timing->add_baselines() = ToBaseline(*form, time, timing->speedup());
  }
}

}  // namespace warpsmith
