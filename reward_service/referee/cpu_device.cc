#include "reward_service/referee/cpu_device.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/memory_file.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/libraries/emptied_libraries.h"
#include "reward_service/referee/timing_plan.h"

namespace warpsmith {
namespace {

constexpr double kMemoryBoundShare = 0.5;
// Over the bandwidth at which a core was seen to write to its nearest cache: nobody is accused by a slow moment.
constexpr double kNearestCacheMargin = 2;
// Of a candidate while it is verified: threads that overwrite each other must meet.
constexpr int kVerifyThreadsMax = 4;
// Of all processes of a judgement that were kept, together. A driver takes tenths of a second for each.
constexpr absl::Duration kEndTimeMax = absl::Seconds(20);

// Of a process's seconds, besides what the reference's constructor takes: what it may have used up beside others where
// it is timed, too.
constexpr double kUsedShareMax = 0.25;

// Whatever the work is, its outputs must be written, and a core's nearest cache takes no more than this.
double LeastMicroseconds(const TaskLayout& layout, const RefereeFacts& facts, int num_cores) {
  const double bytes_per_us =
      facts.nearest_cache_gigabytes_per_second * 1e3 * kNearestCacheMargin * num_cores;
  return bytes_per_us > 0 ? static_cast<double>(layout.own_output_bytes()) / bytes_per_us : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JudgingDevice>> CpuDevice::Open(const LaneTools& tools,
                                                               const Judgement& judgement) {
  judgement.measurement->mutable_advice_facts()->set_num_lane_cores(tools.lane->num_threads());
  UniqueFd source_fd;
  if (judgement.request.kind == CandidateKind::kKernelBenchPython) {
    ASSIGN_OR_RETURN(source_fd, SealedMemoryFile(judgement.request.source));
  }
  return absl::WrapUnique(new CpuDevice(tools, judgement, std::move(source_fd)));
}

std::vector<Room> CpuDevice::Rooms(const TaskLayout& layout) const {
  const JudgeRequest& request = judgement_.request;
  if (is_native()) return {Room::kSealed, Room::kOpen};
  if (request.with_torch) return {Room::kOpen};
  std::vector<Room> rooms = {request.with_blas ? Room::kProducts : Room::kSealed};
  // A reference that is all products, or has none, makes this room the next or the sealed one.
  if (!request.with_blas && layout.product_share > 0 && layout.product_share < 1)
    rooms.push_back(Room::kProducts);
  rooms.push_back(request.extension_fds.empty() ? Room::kEmptied : Room::kOpen);
  return rooms;
}

absl::StatusOr<Zygote*> CpuDevice::ZygoteIn(Room room) const {
  if (is_native()) {
    return judgement_.request.with_blas ? tools_.native_zygote_with_blas->Get() : tools_.native_zygote;
  }
  return room == Room::kProducts ? tools_.python_zygote_with_products->Get() : tools_.python_zygote;
}

absl::StatusOr<CandidateJails> CpuDevice::JailsIn(Room room) {
  ASSIGN_OR_RETURN(Zygote* const zygote, ZygoteIn(room));
  if (room == Room::kEmptied && emptied_.empty()) {
    ASSIGN_OR_RETURN(emptied_, EmptiedLibraries(judgement_.request));
  }
  return CandidateJails({.zygote = zygote,
                         .lane = tools_.lane,
                         .memory_bytes_max = tools_.jail_memory_bytes_max,
                         .room = room,
                         .emptied = &emptied_,
                         .tells_launches = tools_.tells_launches,
                         .deadline = judgement_.deadline},
                        judgement_.request, source_fd_.get(), judgement_.measurement);
}

void CpuDevice::AwaitSpare(PreparedTask& task, Room room) {
  absl::StatusOr<CandidateJails> jails = JailsIn(room);
  if (jails.ok()) jails->AwaitSpare(task);  // else the start of a candidate tells what is wrong
}

absl::StatusOr<StartedProgram> CpuDevice::StartCandidate(PreparedTask& task, Room room) {
  const Lane& lane = *tools_.lane;
  // On a GPU it may be timed, too, and threads of the host do not overwrite each other's work there.
  const int num_threads =
      LaneTask::Of(task).store().on_gpu()
          ? lane.num_threads()
          : std::max(std::min(kVerifyThreadsMax, lane.num_cores_around()), lane.num_threads());
  ASSIGN_OR_RETURN(CandidateJails jails, JailsIn(room));
  ASSIGN_OR_RETURN(StartedJail started, jails.Start(task, nullptr, num_threads));
  return StartedProgram{std::move(started.jail), std::move(started.fault), started.waited,
                        started.constructing};
}

void CpuDevice::KeepVerified(std::unique_ptr<CheckedProgram> program) {
  if (!kept_) return;
  // Made by StartCandidate().
  std::unique_ptr<CheckedJail> jail(static_cast<CheckedJail*>(program.release()));
  if (jail->jail().has_own_inputs() && CanBeTimed(*jail)) kept_->AddVerified(std::move(jail));
}

bool CpuDevice::CanBeTimed(CheckedJail& jail) const {
  const double cpu_seconds_left = jail.jail().limits().cpu_seconds_max - jail.jail().process().cpu_seconds();
  return cpu_seconds_left >= (1 - kUsedShareMax) * judgement_.request.limits.cpu_seconds_max &&
         !jail.MayHaveLackedMemory();
}

std::optional<Fault> CpuDevice::PrepareCandidates(PreparedTask& task, Room room, Batch warm_ups, int num) {
  while (kept_ && kept_->num_warm() < num && LaneTask::Of(task).store().HasPlenty()) {
    absl::StatusOr<CandidateJails> jails = JailsIn(room);
    absl::StatusOr<StartedJail> started =
        jails.ok() ? jails->StartAhead(task, tools_.lane->num_threads()) : jails.status();
    if (!started.ok()) {
      LogInfo(absl::StrCat("a process to be timed is not made ready ahead: ", started.status().ToString()));
      return std::nullopt;  // whoever is alone tells what is wrong
    }
    if (started->fault) return std::move(started->fault);
    for (size_t call = 0; call < warm_ups.size(); ++call) {
      if (auto fault = started->jail->CallAll(warm_ups.subspan(call, 1), Comparing::kFast)) return fault;
    }
    if (!CanBeTimed(*started->jail)) return std::nullopt;
    kept_->AddWarm(std::move(started->jail));
  }
  return std::nullopt;
}

absl::Status CpuDevice::EndCandidates() {
  return kept_ ? kept_->End(absl::Now() + kEndTimeMax) : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TimingDevice>> CpuDevice::StartTiming(PreparedTask& task, Room room,
                                                                     absl::Time lane_since) {
  // A Python program's process could leave out what it does for its caller. On a GPU, where that is little, no more is
  // taken off than of a native program.
  const bool takes_native_path = is_native() || LaneTask::Of(task).store().on_gpu();
  EmptyCandidate* const empty = takes_native_path ? tools_.empty_native : tools_.empty_python;
  ASSIGN_OR_RETURN(const CandidateJails jails, JailsIn(room));
  return std::make_unique<LaneTiming>(jails, &task, tools_.lane, empty, tools_.empty_python, lane_since,
                                      tools_.clocks, kept_ ? &*kept_ : nullptr,
                                      is_native() ? tools_.core_pace : nullptr);
}

TimerOptions CpuDevice::TimingOptions(const TaskLayout& layout) const {
  const RefereeFacts& facts = tools_.facts;
  TimerOptions options;
  options.num_warm_ups = is_native() ? 1 : kWarmUpDraws;
  options.repeats = options.path.may_be_cut_short = !is_native();
  options.can_sample = facts.profile;
  options.least_us = LeastMicroseconds(layout, facts, tools_.lane->num_threads());
  if (!is_native() && facts.gigabytes_per_second_ceiling > 0) {
    options.own_output_bytes = layout.own_output_bytes();
    options.clear_us =
        static_cast<double>(layout.own_output_bytes()) / (facts.gigabytes_per_second_ceiling * 1e3);
  }
  options.long_call_us = kLongCallFactor * facts.empty_call_us;
  options.sample_period_us = kSamplePeriodFactor * facts.sample_us;
  return options;
}

void CpuDevice::Describe(const TaskLayout& layout, v1::Timing* timing, v1::Profile* profile) const {
  timing->set_quality(absl::StrCat(tools_.lane->quality(), timing->quality()));
  const double median_us = timing->candidate().median_us();
  const double ceiling = tools_.facts.gigabytes_per_second_ceiling;
  profile->set_gigabytes_per_second_ceiling(ceiling);
  profile->set_gigabytes_per_second(static_cast<double>(layout.tensor_bytes()) / (median_us * 1e3));
  const double share = profile->gigabytes_per_second() / std::max(ceiling, 1e-9);
  const bool latency = median_us * timing->calls_per_batch() < timing->empty_call_us();
  profile->set_bound(latency ? "latency" : share >= kMemoryBoundShare ? "memory" : "compute");
}

}  // namespace warpsmith
