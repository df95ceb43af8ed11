#include "reward_service/referee/lane_task.h"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"
#include "reward_service/referee/task/room_on_device.h"
#include "reward_service/referee/tensors/gpu_store.h"
#include "reward_service/referee/timing_plan.h"

namespace warpsmith {
namespace {

constexpr int kNumBaselines = 3;
constexpr size_t kFreeOutputsMax = 4;
constexpr int kBaselineCpuSeconds = 3600;
constexpr int64_t kContextBytes = int64_t{640} << 20;
// Of the reference's time, what copying its parameters may take: as much as an interval is wide where timing stops.
constexpr double kCopyShareMax = 0.05;
// An empty call that has waited, with a task's memory, over one in a row, which a referee's facts have.
constexpr double kColdFactor = 2;

// Whether parameters are not moved between calls: that takes long, or an output may lie among them.
bool ParametersStay(const TaskLayout& layout, const RefereeFacts& facts) {
  if (layout.parameters.empty()) return false;
  for (const TensorSpec& output : layout.outputs) {
    if (output.borrowed) return true;
  }
  const int64_t bytes = layout.input_buffer_bytes - layout.parameters.front().offset;
  const double bytes_per_us = facts.gigabytes_per_second_ceiling * 1e3;
  return 2 * static_cast<double>(bytes) >
         kCopyShareMax * static_cast<double>(layout.reference_us) * bytes_per_us;
}

int64_t BytesOfAll(const std::vector<std::unique_ptr<TensorMemory>>& memories) {
  return std::accumulate(memories.begin(), memories.end(), int64_t{0},
                         [](int64_t bytes, const auto& memory) { return bytes + memory->num_bytes(); });
}

}  // namespace

int BatchedCallsMax(const TensorStore& store, const TaskLayout& layout, const RefereeFacts& facts) {
  if (!store.on_gpu() || ParametersStay(layout, facts)) return 1;
  const int64_t draws_bytes_max = store.device_bytes() / kBatchShare;
  const int64_t bytes_of_call = 2 * kRoundsMax * std::max<int64_t>(1, layout.buffer_bytes());
  const int64_t num_outputs = std::max<int64_t>(1, static_cast<int64_t>(layout.outputs.size()));
  const int64_t calls_max = std::min<int64_t>(
      jail::Run::rooms.num_max, static_cast<int64_t>(jail::Done::outputs.num_max) / num_outputs);
  const auto kept = std::clamp<int64_t>(draws_bytes_max / bytes_of_call, 1, std::max<int64_t>(calls_max, 1));
  if (layout.reference_us == 0) return static_cast<int>(kept);
  const double needed =
      std::ceil(kColdFactor * kBatchFactor * facts.empty_call_us / static_cast<double>(layout.reference_us));
  const double least = static_cast<double>(layout.reference_us) < kOneCallUsMin ? 2 : 1;
  return static_cast<int>(std::min(std::max(needed, least), static_cast<double>(kept)));
}

PlaceTask LaneTask::Place(Zygote* zygote, const TaskLimits& limits, int num_threads, TensorStore& store,
                          const RefereeFacts& facts) {
  return [=, &store, &facts] {
    return absl::WrapUnique(new LaneTask(zygote, limits, num_threads, store, facts));
  };
}

int64_t LaneTask::BytesOf(const TaskLayout& layout, int64_t num_draws, TaskUse use) const {
  if (!store_.on_gpu()) return 0;
  // Where the oracle draws.
  const int num_calls = NumBatchedCalls(layout);
  int64_t num_rooms = num_calls;
  int num_contexts = 1;
  if (use == TaskUse::kTiming) {
    // For the reference's inputs and those of verification, and for two sets of outputs.
    num_rooms += 2 * NumRooms(num_calls);
    ++num_contexts;
  }
  return num_contexts * kContextBytes + free_output_bytes_ + (num_draws + num_rooms) * layout.buffer_bytes();
}

absl::Status LaneTask::StartReference(const PreparedTask& task) {
  if (!store_.on_gpu()) return Start(task);
  ASSIGN_OR_RETURN(forked_reference_, ForkReference(task, /*compiles=*/false));
  return absl::OkStatus();
}

absl::Status LaneTask::WarmReference(const PreparedTask& task, absl::Time deadline) {
  return store_.on_gpu() ? absl::OkStatus() : Warm(task, deadline);
}

absl::Status LaneTask::AwaitReference(const PreparedTask& task) {
  if (std::exchange(reference_ended_, false)) baselines_.clear();
  if (!baselines_.empty()) return absl::OkStatus();
  const absl::Time since = absl::Now();
  const bool is_shared = store_.turn() != nullptr && store_.turn()->is_shared();
  RoomOnDevice room(this, since + limits_.answer_time_max);
  absl::Status status;
  do {
    baselines_.clear();
    status = Start(task);
  } while (!status.ok() && room.MayBeThere(status));
  if (status.ok()) status = Warm(task, absl::Now() + limits_.step_time_max);
  // The next judgement must not find them half made; and one that others left no memory may be slow for good, for Torch
  // takes other algorithms then without a word. Who needs it next starts another one.
  if (!status.ok() || (is_shared && store_.WasScarceSince(since))) baselines_.clear();
  return status;
}

bool LaneTask::EndReference() {
  if (reference_ended_ || baselines_.empty()) return false;
  for (const auto& baseline : baselines_) baseline->process().Kill();
  reference_ended_ = true;
  return true;
}

absl::Status LaneTask::AwaitIdle(Behind what) {
  return store_.AwaitDone(what == Behind::kAnswer ? kOracleWorkSeconds : kRecoverySeconds).status();
}

absl::StatusOr<std::unique_ptr<ChildProcess>> LaneTask::ForkReference(const PreparedTask& task,
                                                                      bool compiles) {
  return zygote_->Fork({.role = zygote::Fork::kPython,
                        .memory_bytes_max = limits_.oracle_memory_bytes_max,
                        .cpu_seconds_max = kBaselineCpuSeconds,
                        .num_threads = num_threads_,
                        .gpu = store_.on_gpu(),
                        .launch_queues = task.num_launch_queues(),
                        .compiles = compiles});
}

absl::StatusOr<std::unique_ptr<Jail>> LaneTask::MakeJail(const PreparedTask& task,
                                                         std::unique_ptr<ChildProcess> process,
                                                         absl::Duration call_time_max,
                                                         std::shared_ptr<TensorMemory> inputs) {
  ASSIGN_OR_RETURN(Buffers buffers, MakeBuffers(store_, task.layout(), CandidateKind::kKernelBenchPython,
                                                NumBatchedCalls(task.layout()), std::move(inputs)));
  JudgeLimits limits;
  limits.cpu_seconds_max = kBaselineCpuSeconds;
  limits.call_seconds_max = absl::ToDoubleSeconds(call_time_max);
  return std::make_unique<Jail>(std::move(process), std::move(buffers), task.layout(), limits);
}

absl::StatusOr<std::unique_ptr<Jail>> LaneTask::StartForm(const PreparedTask& task,
                                                          const ReferenceForm& form) {
  ASSIGN_OR_RETURN(auto process, ForkReference(task, form.compiles));
  return MakeJail(task, std::move(process), form.time_max, baselines_.front()->inputs());
}

Program LaneTask::ProgramOf(const PreparedTask& task, const std::string& form, absl::Time deadline) const {
  Program program;
  program.kind = CandidateKind::kKernelBenchPython;
  program.source_fd = task.source_fd();
  program.entry = jail::Begin::kBaseline;
  program.form = form;
  program.init_inputs = task.init_inputs();
  program.construction_seed = task.construction_seed();
  program.num_threads = num_threads_;
  program.deadline = deadline;
  return program;
}

absl::Status LaneTask::Start(const PreparedTask& task) {
  for (int i = 0; i < (store_.on_gpu() ? 1 : kNumBaselines); ++i) {
    std::unique_ptr<ChildProcess> process = std::move(forked_reference_);
    // Whoever had the turn when it opened the GPU may have had all memory there.
    if (process == nullptr || !process->AwaitHello(absl::Now() + limits_.answer_time_max).ok()) {
      ASSIGN_OR_RETURN(process, ForkReference(task, /*compiles=*/false));
      // What keeps it from opening the GPU is not the reference's doing.
      if (store_.on_gpu()) RETURN_IF_ERROR(process->AwaitHello(absl::Now() + limits_.answer_time_max));
    }
    ASSIGN_OR_RETURN(auto baseline,
                     MakeJail(task, std::move(process), limits_.answer_time_max, /*inputs=*/nullptr));
    baselines_.push_back(std::move(baseline));
  }
  return absl::OkStatus();
}

absl::Status LaneTask::Warm(const PreparedTask& task, absl::Time deadline) {
  const Program program = ProgramOf(task, jail::Begin::kEager, deadline);
  const auto& draws = task.timing_draws();
  for (const auto& baseline : baselines_) {
    ASSIGN_OR_RETURN(std::optional<Fault> fault, baseline->Begin(program, nullptr));
    for (int call = 0; call < kWarmUpCalls && !fault; ++call) {
      if (absl::Now() > deadline) return TaskAtFault("the reference does not end when it is run alone");
      baseline->Load(*draws[static_cast<size_t>(call) % draws.size()]);
      fault = baseline->Run();
    }
    if (fault) return TaskAtFault(absl::StrCat("the reference fails when it is run alone: ", fault->reason));
  }
  return absl::OkStatus();
}

absl::StatusOr<Buffers> LaneTask::BorrowBuffers(const TaskLayout& layout, CandidateKind kind,
                                                const Jail* baseline) {
  const int calls_max = NumBatchedCalls(layout);
  const auto& inputs = baseline == nullptr ? verification_inputs_ : baseline->inputs();
  if (kind == CandidateKind::kNative && !free_outputs_.empty() && inputs != nullptr) {
    Buffers buffers{.store = &store_, .inputs = inputs, .outputs = std::move(free_outputs_.back())};
    buffers.num_rooms = NumRooms(calls_max);
    free_outputs_.pop_back();
    free_output_bytes_ -= BytesOfAll(buffers.outputs);
    return buffers;
  }
  ASSIGN_OR_RETURN(Buffers buffers, MakeBuffers(store_, layout, kind, calls_max, inputs));
  if (baseline == nullptr) verification_inputs_ = buffers.inputs;
  return buffers;
}

absl::StatusOr<Buffers> LaneTask::OwnBuffers(const TaskLayout& layout, CandidateKind kind) {
  return MakeBuffers(store_, layout, kind, NumBatchedCalls(layout), /*inputs=*/nullptr);
}

void LaneTask::ReturnBuffers(Buffers buffers) {
  if (buffers.outputs.empty() || free_outputs_.size() >= kFreeOutputsMax) return;
  free_output_bytes_ += BytesOfAll(buffers.outputs);
  free_outputs_.push_back(std::move(buffers.outputs));
}

}  // namespace warpsmith
