#include "reward_service/referee/judge.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/cpu_timing.h"

namespace warpsmith {
namespace {

constexpr size_t kReasonBytesMax = 512;
constexpr double kMemoryBoundShare = 0.5;
// Over the bandwidth at which a core was seen to write to its nearest cache: nobody is accused by a slow moment.
constexpr double kNearestCacheMargin = 2;

double Seconds(absl::Time since) { return absl::ToDoubleSeconds(absl::Now() - since); }

}  // namespace

absl::StatusOr<v1::Measurement> Judge::Run() {
  measurement_.mutable_advice_facts()->set_num_lane_cores(tools_.lane->num_threads());
  grade().mutable_correctness();  // every Grade of a referee has it
  const absl::Status status = RunAll();
  if (pooled_ != nullptr) tools_.pool->End(pooled_);
  if (absl::IsInvalidArgument(status)) {
    Conclude(v1::VERDICT_INVALID_TASK, std::string(status.message()));
    return std::move(measurement_);
  }
  if (!status.ok()) return status;
  return std::move(measurement_);
}

absl::Status Judge::RunAll() {
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(pooled_,
                   tools_.pool->Begin(request_.task, request_.seed, request_.another_follows, deadline_));
  task_ = pooled_->task.get();
  grade().mutable_cost()->set_oracle_seconds(Seconds(start));
  if (!is_native()) {
    ASSIGN_OR_RETURN(source_fd_, SharedBuffer::SealedText(request_.source));
  }
  const v1::Measurement before = measurement_;
  lane_since_ = absl::Now();  // of both attempts together
  ASSIGN_OR_RETURN(std::optional<Fault> fault, RunIn(Room::kSealed));
  if (fault && fault->withheld) {
    measurement_ = before;
    ASSIGN_OR_RETURN(fault, RunIn(Room::kOpen));
  }
  if (fault) Convict(*fault);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Fault>> Judge::RunIn(Room room) {
  CandidateJails jails({.zygote = is_native() ? tools_.native_zygote : tools_.python_zygote,
                        .lane = tools_.lane,
                        .memory_bytes_max = tools_.jail_memory_bytes_max,
                        .room = room,
                        .deadline = deadline_},
                       request_, source_fd_.get(), &measurement_);
  Verifier verifier(&jails, tools_.lane, request_, lane_since_, LongCallUs(), &measurement_);
  ASSIGN_OR_RETURN(Verified verified, verifier.Run(*task_));
  grade().mutable_cost()->set_verify_seconds(LaneSeconds());
  measurement_.set_output_tail(std::move(verified.output_tail));
  if (verified.fault) return std::move(verified.fault);
  Conclude(v1::VERDICT_CORRECT, absl::StrCat("right on all ", grade().correctness().num_draws(), " draws"));
  if (request_.verify_only) return std::nullopt;
  const absl::Time waiting = absl::Now();
  RETURN_IF_ERROR(tools_.pool->AwaitCompleted(pooled_, deadline_));
  grade().mutable_cost()->set_lane_wait_seconds(Seconds(waiting));
  lane_since_ += absl::Now() - waiting;  // which was not the candidate's doing
  return Time(room, &jails, verified.takes_parameters);
}

absl::StatusOr<std::optional<Fault>> Judge::Time(Room room, CandidateJails* jails, bool takes_parameters) {
  const absl::Time start = absl::Now();
  CpuTiming device(jails, task_, tools_.lane, is_native() ? tools_.empty_native : tools_.empty_python,
                   tools_.empty_python, lane_since_);
  Timer timer(&device, OptionsOf(room, takes_parameters));
  ASSIGN_OR_RETURN(std::optional<Fault> fault, timer.Run());
  grade().mutable_cost()->set_profile_seconds(timer.sampling_seconds());
  grade().mutable_cost()->set_time_seconds(Seconds(start) - timer.sampling_seconds());
  if (fault) return fault;
  *grade().mutable_timing() = TimingOf(room, timer, takes_parameters);
  *grade().mutable_profile() = ProfileOf(timer);
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
  if (!is_native() && tools_.facts.gigabytes_per_second_ceiling > 0) {
    options.own_output_bytes = OutputBytes();
    options.clear_us = static_cast<double>(OutputBytes()) / (tools_.facts.gigabytes_per_second_ceiling * 1e3);
  }
  options.long_call_us = LongCallUs();
  options.sample_period_us = kSamplePeriodFactor * tools_.facts.sample_us;
  return options;
}

double Judge::LongCallUs() const { return kLongCallFactor * tools_.facts.empty_call_us; }

int64_t Judge::OutputBytes() const {
  int64_t num_bytes = 0;
  for (const TensorSpec& spec : task_->layout().outputs) num_bytes += spec.borrowed ? 0 : spec.num_bytes;
  return num_bytes;
}

// Whatever the work is, its outputs must be written, and a core's nearest cache takes no more than this.
double Judge::LeastMicroseconds() const {
  const double bytes_per_us = tools_.facts.nearest_cache_gigabytes_per_second * 1e3 * kNearestCacheMargin *
                              tools_.lane->num_threads();
  return bytes_per_us > 0 ? static_cast<double>(OutputBytes()) / bytes_per_us : 0;
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

v1::Timing Judge::TimingOf(Room room, const Timer& timer, bool takes_parameters) const {
  v1::Timing timing = timer.Timing();
  timing.set_quality(absl::StrCat(tools_.lane->quality(), timing.quality()));
  timing.set_parameters_fixed(!takes_parameters);
  timing.set_libraries_withheld(room == Room::kSealed);
  DoubtShortCalls(is_native(), &timing);
  return timing;
}

v1::Profile Judge::ProfileOf(const Timer& timer) const {
  v1::Profile profile = timer.Profile();
  const double median_us = measurement_.grade().timing().candidate().median_us();
  const double ceiling = tools_.facts.gigabytes_per_second_ceiling;
  profile.set_gigabytes_per_second_ceiling(ceiling);
  profile.set_gigabytes_per_second(static_cast<double>(task_->layout().tensor_bytes()) / (median_us * 1e3));
  const double share = profile.gigabytes_per_second() / std::max(ceiling, 1e-9);
  const bool latency = median_us < measurement_.grade().timing().empty_call_us();
  profile.set_bound(latency ? "latency" : share >= kMemoryBoundShare ? "memory" : "compute");
  return profile;
}

}  // namespace warpsmith
