#include "reward_service/referee/gpu_device.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/cpu_task.h"
#include "reward_service/referee/timing_plan.h"

namespace warpsmith {
namespace {

// Outputs may end in the GPU's cache, which takes several times what its memory does: nobody is accused who left them
// there.
constexpr double kCacheFactor = 4;
// So that no luck of one process is taken for the program's.
constexpr int kInstancesMin = 2;

}  // namespace

absl::StatusOr<std::unique_ptr<JudgingDevice>> GpuDevice::Open(const CpuTools& tools, GpuStore* store,
                                                               const Judgement& judgement) {
  ASSIGN_OR_RETURN(auto host, CpuDevice::Open(tools, judgement));
  const bool is_native = judgement.request.kind == CandidateKind::kNative;
  return absl::WrapUnique(new GpuDevice(tools, store, is_native, std::move(host)));
}

absl::StatusOr<StartedProgram> GpuDevice::StartCandidate(PreparedTask& task, Room room) {
  return host_->StartCandidate(task, room);
}

absl::StatusOr<std::unique_ptr<TimingDevice>> GpuDevice::StartTiming(PreparedTask& task, Room room,
                                                                     absl::Time lane_since) {
  const absl::Time begin = absl::Now();
  RETURN_IF_ERROR(CpuTask::Of(task).AwaitReference(task));
  return host_->StartTiming(task, room,
                            lane_since + (absl::Now() - begin));  // which was not the candidate's doing
}

TimerOptions GpuDevice::TimingOptions(const TaskLayout& layout, Room room) const {
  TimerOptions options;
  options.num_warm_ups = kWarmUpDraws;
  options.can_sample = false;
  options.path.cold = true;
  // The reference would have the copies of its parameters on its clock, and a native program none.
  const bool alone = is_native_ && !layout.parameters.empty();
  options.batch_calls_max = alone ? 1 : static_cast<size_t>(BatchedCallsMax(*store_, layout, tools_.facts));
  options.path.takes_between_off = is_native_;
  if (room == Room::kOpen) options.enough_above = 1;  // what counts there at most
  const double bytes_per_us = tools_.facts.gigabytes_per_second_ceiling * 1e3 * kCacheFactor;
  options.least_us = bytes_per_us > 0 ? static_cast<double>(layout.own_output_bytes()) / bytes_per_us : 0;
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
}

}  // namespace warpsmith
