#include "reward_service/referee/judge.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/cpu_timing.h"

namespace warpsmith {
namespace {

constexpr double kMemoryBoundShare = 0.5;
// Over the bandwidth at which a core was seen to write to its nearest cache: nobody is accused by a slow moment.
constexpr double kNearestCacheMargin = 2;

double Seconds(absl::Time since) { return absl::ToDoubleSeconds(absl::Now() - since); }

}  // namespace

absl::StatusOr<Judgement> Judge::Run() {
  const absl::Status status = RunAll();
  if (absl::IsInvalidArgument(status)) {
    judgement_.outcome = Outcome::kInvalidTask;
    judgement_.reason = std::string(status.message());
    return std::move(judgement_);
  }
  if (!status.ok()) return status;
  return std::move(judgement_);
}

absl::Status Judge::RunAll() {
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(pooled_, tools_.pool->Get(request_.task, /*for_timing=*/false, request_.seed, deadline_));
  task_ = pooled_->task.get();
  judgement_.seconds.oracle = Seconds(start);
  judgement_.bytes_per_call = task_->layout().tensor_bytes();
  if (!is_native()) {
    ASSIGN_OR_RETURN(source_fd_, SharedBuffer::SealedText(request_.source));
  }
  const Judgement before = judgement_;
  lane_since_ = absl::Now();  // of both attempts together
  ASSIGN_OR_RETURN(std::optional<Fault> fault, RunIn(Room::kSealed));
  if (fault && fault->withheld) {
    judgement_ = before;
    ASSIGN_OR_RETURN(fault, RunIn(Room::kOpen));
  }
  if (fault) Convict(*std::move(fault));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Fault>> Judge::RunIn(Room room) {
  CandidateJails jails({.zygote = is_native() ? tools_.native_zygote : tools_.python_zygote,
                        .lane = tools_.lane,
                        .memory_bytes_max = tools_.jail_memory_bytes_max,
                        .room = room,
                        .deadline = deadline_},
                       request_, source_fd_.get(), &judgement_);
  Verifier verifier(&jails, tools_.lane, request_, lane_since_, LongCallUs(), &judgement_);
  ASSIGN_OR_RETURN(Verified verified, verifier.Run(*task_));
  judgement_.seconds.verify = LaneSeconds();
  judgement_.output_tail = std::move(verified.output_tail);
  if (verified.fault) return std::move(verified.fault);
  judgement_.outcome = Outcome::kCorrect;
  judgement_.reason = absl::StrCat("right on all ", judgement_.correctness.num_draws, " draws");
  if (request_.verify_only) return std::nullopt;
  const absl::Time waiting = absl::Now();
  RETURN_IF_ERROR(tools_.pool->Get(request_.task, /*for_timing=*/true, request_.seed, deadline_).status());
  judgement_.seconds.lane_wait = Seconds(waiting);
  lane_since_ += absl::Now() - waiting;  // which was not the candidate's doing
  return Time(room, &jails, verified.takes_parameters);
}

absl::StatusOr<std::optional<Fault>> Judge::Time(Room room, CandidateJails* jails, bool takes_parameters) {
  const absl::Time start = absl::Now();
  CpuTiming device(jails, task_, tools_.lane, is_native() ? tools_.empty_native : tools_.empty_python,
                   tools_.empty_python, lane_since_);
  Timer timer(&device, OptionsOf(room, takes_parameters));
  ASSIGN_OR_RETURN(std::optional<Fault> fault, timer.Run());
  judgement_.seconds.profile = timer.sampling_seconds();
  judgement_.seconds.time = Seconds(start) - judgement_.seconds.profile;
  if (fault) return fault;
  ReportTiming(room, timer, takes_parameters);
  ReportProfile(timer);
  return std::nullopt;
}

TimerOptions Judge::OptionsOf(Room room, bool takes_parameters) const {
  TimerOptions options;
  options.effort = request_.timing;
  options.lane_seconds_max = request_.limits.lane_seconds_max;
  options.input_sets = takes_parameters ? task_->timing_draws() : task_->construction_draws();
  if (takes_parameters) {
    for (const Draw* draw : task_->verification_draws()) {
      if (!draw->own_distribution) options.unusual_sets.push_back(draw);
    }
  }
  options.num_warm_ups = !is_native() && takes_parameters ? kWarmUpDraws : 1;
  options.repeats = !is_native();
  options.samples_rounds = room == Room::kOpen;
  options.can_sample = tools_.facts.profile;
  options.least_us = LeastMicroseconds();
  options.long_call_us = LongCallUs();
  options.sample_period_us = kSamplePeriodFactor * tools_.facts.sample_us;
  return options;
}

double Judge::LongCallUs() const { return kLongCallFactor * tools_.facts.empty_call_us; }

// Whatever the work is, its outputs must be written, and a core's nearest cache takes no more than this.
double Judge::LeastMicroseconds() const {
  int64_t num_bytes = 0;
  for (const TensorSpec& spec : task_->layout().outputs) num_bytes += spec.borrowed ? 0 : spec.num_bytes;
  const double bytes_per_us = tools_.facts.nearest_cache_gigabytes_per_second * 1e3 * kNearestCacheMargin *
                              tools_.lane->num_threads();
  return bytes_per_us > 0 ? static_cast<double>(num_bytes) / bytes_per_us : 0;
}

void Judge::Convict(Fault fault) {
  judgement_.outcome = fault.outcome;
  judgement_.reason = std::move(fault.reason);
  judgement_.hack_family = std::move(fault.hack_family);
  judgement_.input_mutated |= fault.input_mutated;
  judgement_.guard_touched |= fault.guard_touched;
  judgement_.out_of_bounds |= fault.out_of_bounds;
}

void Judge::ReportTiming(Room room, const Timer& timer, bool takes_parameters) {
  TimingNumbers timing = timer.Timing();
  timing.quality = absl::StrCat(tools_.lane->quality(), timing.quality);
  timing.parameters_fixed = !takes_parameters;
  timing.libraries_withheld = room == Room::kSealed;
  DoubtShortCalls(is_native(), &timing);
  judgement_.timing = std::move(timing);
}

void Judge::ReportProfile(const Timer& timer) {
  ProfileNumbers profile = timer.Profile();
  profile.gigabytes_per_second_ceiling = tools_.facts.gigabytes_per_second_ceiling;
  const double median_us = judgement_.timing->candidate.median_us;
  profile.gigabytes_per_second = static_cast<double>(judgement_.bytes_per_call) / (median_us * 1e3);
  const double share = profile.gigabytes_per_second / std::max(profile.gigabytes_per_second_ceiling, 1e-9);
  const bool latency = median_us < judgement_.timing->empty_call_us;
  profile.bound = latency ? "latency" : share >= kMemoryBoundShare ? "memory" : "compute";
  judgement_.profile = std::move(profile);
}

}  // namespace warpsmith
