#include "reward_service/referee/recorder.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"
#include "core/base/memory_file.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/shared_buffer.h"
#include "reward_service/referee/process/fault.h"
#include "reward_service/referee/task/clear_device.h"
#include "reward_service/referee/task/room_on_device.h"
#include "reward_service/referee/tensors/gpu_store.h"

namespace warpsmith {
namespace {

constexpr int kCpuSeconds = 10;
constexpr absl::Duration kTimeout = absl::Seconds(15);
constexpr double kIdleSeconds = 2;  // in which a GPU is idle again once the program is killed
// As _explain of python_jail.py begins.
constexpr const char* kErrorsOfFiles[] = {"ImportError", "ModuleNotFoundError", "PermissionError",
                                          "FileNotFoundError", "OSError"};
// As refuse_compilers of python_jail.py says, with a GPU or without.
constexpr char kDoesNotEnd[] = "the program does not end";
constexpr char kNoCompilers[] = "RuntimeError: torch.compile is of no use here";
constexpr int kOnGpuMax = 4;  // at once: each may take much of the memory

nlohmann::json Describe(const cuda::GpuFacts& gpu) {
  using jail::KnownGpu;
  return {{KnownGpu::name, gpu.name},
          {KnownGpu::capability_major, gpu.capability_major},
          {KnownGpu::capability_minor, gpu.capability_minor},
          {KnownGpu::memory_bytes, gpu.memory_bytes},
          {KnownGpu::l2_cache_bytes, gpu.l2_cache_bytes},
          {KnownGpu::num_multiprocessors, gpu.num_multiprocessors}};
}

// Whether a program has failed for want of what it may not read, by its own word.
bool WantsFiles(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return false;
  return std::any_of(std::begin(kErrorsOfFiles), std::end(kErrorsOfFiles),
                     [&](const char* error) { return absl::StartsWith(status.message(), error); });
}

// The judgement will say of what it fails.
absl::StatusOr<RecordedList> NothingRecorded() {
  ASSIGN_OR_RETURN(UniqueFd list, SealedMemoryFile("[]"));
  return RecordedList{std::move(list), false};
}

}  // namespace

absl::StatusOr<UniqueFd> ListOf(absl::StatusOr<RecordedList> recorded) {
  RETURN_IF_ERROR(recorded.status());
  return std::move(recorded->list);
}

absl::StatusOr<RecordedList> Recorder::Record(const TaskSource& task, int program_fd,
                                              absl::Time deadline) const {
  auto pooled = pool_->GetExamined(task, deadline);
  if (absl::IsInvalidArgument(pooled.status()))  // the task's fault, and here it means the program's
    return absl::FailedPreconditionError(pooled.status().message());
  RETURN_IF_ERROR(pooled.status());
  absl::StatusOr<RecordedList> recorded = RecordOf(*pooled.value()->task, program_fd, deadline);
  pool_->Return(*std::move(pooled));
  return recorded;
}

absl::StatusOr<RecordedList> Recorder::RecordOf(const PreparedTask& task, int program_fd,
                                                absl::Time deadline) const {
  ASSIGN_OR_RETURN(const std::string source, ReadMemoryFile(program_fd, service::Judge::kSourceBytesMax));
  const bool has_triton = store_->on_gpu() && !zygote_->triton_version().empty();
  const bool wants_kernels = has_triton && absl::StrContains(source, "triton");
  Subject subject{task, program_fd, wants_kernels, deadline};
  absl::StatusOr<Recording> recording = RecordAnywhere(subject);
  if (subject.own_kernels && WantsFiles(recording.status())) {
    if (!absl::StrContains(source, "load_inline")) return NothingRecorded();
    subject.own_kernels = false;
    recording = RecordAnywhere(subject);
  }
  RETURN_IF_ERROR(recording.status());
  return RecordedList{std::move(recording->list), subject.own_kernels};
}

absl::StatusOr<Recorder::Recording> Recorder::RecordAnywhere(const Subject& subject) const {
  absl::StatusOr<Recording> recording = RecordOn(Place::kHost, subject);
  const bool is_its_own = recording.ok() || absl::IsInvalidArgument(recording.status());
  if (absl::StartsWith(recording.status().message(), kNoCompilers)) return recording;
  if (store_->on_gpu() && is_its_own && !(recording.ok() && recording->is_complete))
    recording = RecordOnGpu(subject);
  return recording;
}

absl::StatusOr<Recorder::Recording> Recorder::RecordOnGpu(const Subject& subject) const {
  {
    absl::MutexLock lock(&mutex_);
    const auto has_room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return num_on_gpu_ < kOnGpuMax; };
    if (!mutex_.AwaitWithDeadline(absl::Condition(&has_room), subject.deadline))
      return absl::DeadlineExceededError("the GPU's turn came too late");
    ++num_on_gpu_;
  }
  absl::StatusOr<Recording> recording = RecordOn(Place::kGpuBesideOthers, subject);
  // What does not end would keep the GPU from all others.
  if (!recording.ok() && !absl::IsDeadlineExceeded(recording.status()) &&
      recording.status().message() != kDoesNotEnd) {
    const bool lacked_memory =
        SaysWantOfMemory(StdView(recording.status().message())) || !store_->HasPlenty();
    recording = RecordOn(lacked_memory ? Place::kGpuEmptied : Place::kGpuAlone, subject);
  }
  absl::MutexLock lock(&mutex_);
  --num_on_gpu_;
  return recording;
}

absl::StatusOr<std::unique_ptr<ChildProcess>> Recorder::Start(bool gpu, const Subject& subject) const {
  const double of_reference =
      absl::ToDoubleSeconds(subject.task.layout().construction) * options_.num_threads;
  ASSIGN_OR_RETURN(auto process,
                   zygote_->Fork({.role = zygote::Fork::kPython,
                                  .memory_bytes_max = options_.jail_memory_bytes_max +
                                                      subject.task.layout().parameter_bytes(),
                                  .cpu_seconds_max = kCpuSeconds + static_cast<int>(of_reference),
                                  .num_threads = options_.num_threads,
                                  .sealed = subject.own_kernels,
                                  .gpu = gpu,
                                  .records = subject.own_kernels}));
  RETURN_IF_ERROR(process->AwaitHello(subject.deadline));
  return process;
}

absl::StatusOr<Recorder::Recording> Recorder::RecordOn(Place place, const Subject& subject) const {
  const absl::Time deadline = subject.deadline;
  const bool gpu = place != Place::kHost;
  const bool is_alone = place == Place::kGpuAlone || place == Place::kGpuEmptied;
  absl::StatusOr<std::unique_ptr<ChildProcess>> started = Start(gpu, subject);
  // Where programs run on a GPU their first call does, too, and nobody is timed beside it.
  const auto kind = is_alone ? DeviceTurn::Kind::kAlone : DeviceTurn::Kind::kShared;
  ASSIGN_OR_RETURN(const auto turn, DeviceTurn::Take(gpu ? store_->turn() : nullptr, kind, deadline));
  if (is_alone) {
    RETURN_IF_ERROR(ClearDevice([this] { return store_->AwaitDone(kRecoverySeconds).status(); },
                                [this] { return store_->EndWaiting(); }, pool_));
  }
  if (place == Place::kGpuEmptied) (void)store_->EndWaiting();
  // Who had the turn may have had all memory of the GPU.
  if (gpu && !started.ok()) {
    RoomOnDevice room(store_, deadline);
    do started = Start(gpu, subject);
    while (!started.ok() && room.MayBeThere(started.status()));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> process, std::move(started));
  ASSIGN_OR_RETURN(const auto buffer, SharedBuffer::Create(jail::Recorded::bytes.high));
  const absl::Time timeout = absl::Now() + kTimeout + subject.task.layout().construction;
  auto request = Make<jail::Record>({{jail::Record::init_inputs, subject.task.init_inputs()},
                                     {jail::Record::inputs, ToJson(subject.task.layout().inputs)},
                                     {jail::Record::calls, gpu == store_->on_gpu()},
                                     {jail::Record::kernels, subject.own_kernels}});
  if (!gpu && options_.gpu) request[jail::Record::gpu.name] = Describe(*options_.gpu);
  const absl::StatusOr<Packet> answer =
      process->Ask(request, {subject.program_fd, buffer->fd()}, std::min(deadline, timeout));
  const Ending ending = absl::IsUnavailable(answer.status()) ? process->AwaitEnd() : Ending{};
  process.reset();                                      // nobody writes to the buffer any more
  if (is_alone) (void)store_->AwaitDone(kIdleSeconds);  // or whoever has the next turn finds out
  if (absl::IsDeadlineExceeded(answer.status())) {
    if (deadline < timeout) return answer.status();
    return absl::InvalidArgumentError(kDoesNotEnd);
  }
  if (!answer.ok()) return absl::InvalidArgumentError(absl::StrCat("the program ", DescribeEnding(ending)));
  if (!Is<jail::Recorded>(answer->fields)) {
    return absl::InvalidArgumentError(
        Escape(Read(answer->fields, jail::Failed::error), jail::Failed::error.bytes_max));
  }
  const int64_t num_bytes = Read(answer->fields, jail::Recorded::bytes);
  ASSIGN_OR_RETURN(UniqueFd list, SealedMemoryFile({buffer->data(), static_cast<size_t>(num_bytes)}));
  return Recording{std::move(list), Read(answer->fields, jail::Recorded::complete)};
}

}  // namespace warpsmith
