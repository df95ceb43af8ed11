#include "reward_service/referee/recorder.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/shared_buffer.h"

namespace warpsmith {
namespace {

constexpr int kCpuSeconds = 10;
constexpr absl::Duration kTimeout = absl::Seconds(15);
constexpr double kIdleSeconds = 2;  // in which a GPU is idle again once the program is killed
constexpr std::string_view kNothing = "[]";

}  // namespace

absl::StatusOr<UniqueFd> Recorder::Record(const TaskSource& task, int program_fd, absl::Time deadline) const {
  const auto pooled = pool_->GetExamined(task, deadline);
  if (absl::IsInvalidArgument(pooled.status()))  // the task's fault, and here it means the program's
    return absl::FailedPreconditionError(pooled.status().message());
  RETURN_IF_ERROR(pooled.status());
  const PreparedTask& prepared = *pooled.value()->task;
  if (!store_->on_gpu()) return RecordOn(/*gpu=*/false, prepared, program_fd, deadline);
  absl::StatusOr<UniqueFd> list = RecordOn(/*gpu=*/false, prepared, program_fd, deadline);
  if (list.ok()) {
    ASSIGN_OR_RETURN(const std::string text, SharedBuffer::ReadText(list->get(), jail::Recorded::bytes.high));
    if (text != kNothing) return list;
  } else if (!absl::IsInvalidArgument(list.status())) {
    return list;
  }
  return RecordOn(/*gpu=*/true, prepared, program_fd, deadline);
}

absl::StatusOr<UniqueFd> Recorder::RecordOn(bool gpu, const PreparedTask& task, int program_fd,
                                            absl::Time deadline) const {
  ASSIGN_OR_RETURN(auto process, zygote_->Fork({.role = zygote::Fork::kPython,
                                                .memory_bytes_max = options_.jail_memory_bytes_max,
                                                .cpu_seconds_max = kCpuSeconds,
                                                .num_threads = options_.num_threads,
                                                .gpu = gpu}));
  RETURN_IF_ERROR(process->AwaitHello(deadline));
  ASSIGN_OR_RETURN(const auto buffer, SharedBuffer::Create(jail::Recorded::bytes.high));
  // Where programs run on a GPU their first call does, too, and nobody is timed beside it.
  const absl::MutexLockMaybe turn(gpu ? store_->turn() : nullptr);
  const absl::Time timeout = absl::Now() + kTimeout;
  const auto request = Make<jail::Record>({{jail::Record::init_inputs, task.init_inputs()},
                                           {jail::Record::inputs, ToJson(task.layout().inputs)},
                                           {jail::Record::calls, gpu == store_->on_gpu()}});
  const absl::StatusOr<Packet> answer =
      process->Ask(request, {program_fd, buffer->fd()}, std::min(deadline, timeout));
  const Ending ending = absl::IsUnavailable(answer.status()) ? process->AwaitEnd() : Ending{};
  process.reset();                                 // nobody writes to the buffer any more
  if (gpu) (void)store_->AwaitDone(kIdleSeconds);  // or whoever has the next turn finds out
  if (absl::IsDeadlineExceeded(answer.status())) {
    if (deadline < timeout) return answer.status();
    return absl::InvalidArgumentError("the program does not end");
  }
  if (!answer.ok()) return absl::InvalidArgumentError(absl::StrCat("the program ", DescribeEnding(ending)));
  if (!Is<jail::Recorded>(answer->fields)) {
    return absl::InvalidArgumentError(
        Escape(Read(answer->fields, jail::Failed::error), jail::Failed::error.bytes_max));
  }
  const int64_t num_bytes = Read(answer->fields, jail::Recorded::bytes);
  return SharedBuffer::SealedText({buffer->data(), static_cast<size_t>(num_bytes)});
}

}  // namespace warpsmith
