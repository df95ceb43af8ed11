#include "reward_service/referee/timer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr double kSlownessMax = 2;  // of the reference, against the fastest that it was seen
constexpr int kCallsOfRound = 2 * kCandidateCallsOfRound;
// For advice: enough to tell a tenth of a program's time from noise.
constexpr int kSamplesWanted = 60;
// Before batches that count: a fresh process has most of its memory from its parent, and copies it where it writes.
constexpr int kWarmUpBatches = 2;

}  // namespace

Timer::Timer(TimingDevice* device, TimerOptions options)
    : device_(device),
      options_(std::move(options)),
      random_(std::random_device()()),
      path_(device, options_.path),
      sampler_(options_.sample_period_us) {}

absl::StatusOr<std::optional<Fault>> Timer::Run() {
  while (static_cast<int>(instances_.size()) < options_.effort.num_instances_max && !OutOfTime() &&
         (owes_round_ || !IsEnough(instances_, options_.effort))) {
    Instance instance;
    const int index = static_cast<int>(instances_.size()) + num_slow_instances_;
    ASSIGN_OR_RETURN(std::optional<Fault> fault, TimeInstance(index, &instance));
    if (fault) return fault;
    if (instance.rounds.empty() && owes_round_) continue;  // none counts
    if (instance.rounds.empty()) break;                    // out of time
    instances_.push_back(std::move(instance));
    TakePathOff();
    const double slowness = device_->Slowness(ReferenceMedian(instances_.back()) + path_.OfReference({}).us);
    // Whether the machine became slow, for both, or something slows the reference alone, is not known here.
    instances_.back().reference_slowness = slowness > kSlownessMax ? slowness / kSlownessMax : 1;
    // The next one is timed against another process of the reference. Once all of them were slow, the machine
    // has changed.
    if (slowness > kSlownessMax && num_slow_instances_ < device_->num_references()) {
      ++num_slow_instances_;
      slow_instance_ = std::move(instances_.back());
      instances_.pop_back();
    }
  }
  // Better an instance beside a slow reference, which is charged for it, than none.
  if (instances_.empty() && slow_instance_) {
    instances_.push_back(*std::move(slow_instance_));
    --num_slow_instances_;
    TakePathOff();
  }
  // Better a round during which the clocks changed than none.
  if (instances_.empty() && set_aside_) {
    instances_.emplace_back().rounds.push_back(*std::move(set_aside_));
    --num_repeated_rounds_;
    TakePathOff();
  }
  if (!instances_.empty()) return std::nullopt;
  return Fault{v1::VERDICT_TIMEOUT,
               absl::StrCat("held the lane for ", device_->LaneSeconds(), " s before it was timed once, ",
                            options_.lane_seconds_max, " s are allowed")};
}

absl::StatusOr<std::optional<Fault>> Timer::TimeInstance(int index, Instance* instance) {
  last_candidate_ = nullptr;
  Sides sides;
  owes_round_ = false;
  ASSIGN_OR_RETURN(sides.reference, device_->Reference(index));
  RETURN_IF_ERROR(
      path_.MeasureCall());  // before there is a process of the candidate's that could make it longer
  ASSIGN_OR_RETURN(StartedSide started, device_->StartCandidate());
  if (started.fault) return std::move(started.fault);
  sides.candidate = std::move(started.side);
  if (options_.path.cold && options_.path.takes_between_off) sides.reference->TellSteady();
  if (options_.trusts_candidate) sides.candidate->TellSteady();
  sides.candidate_is_warm = started.is_warm;
  ASSIGN_OR_RETURN(std::optional<Fault> fault, WarmUp(&sides));
  if (!fault) {
    LookAtMemory(&sides);
    ASSIGN_OR_RETURN(fault, WarmUpBatches(&sides));
  }
  if (!fault) {
    ASSIGN_OR_RETURN(fault, DoSteps(&sides, instance));
  }
  const int calls_of_round = DrawsOfRound(static_cast<int>(sides.batch_calls));
  const int num_calls = sides.batch_calls > 1
                            ? calls_of_round * std::max(1, static_cast<int>(instance->rounds.size()))
                            : kCandidateCallsOfRound;
  instance->ahead_us =
      options_.clear_us * ShareAhead(sides.excess_bytes, options_.own_output_bytes, num_calls);
  if (!fault) {
    last_candidate_ = std::move(sides.candidate);
    last_set_ = sides.former_set;
  }
  return fault;
}

absl::StatusOr<v1::Profile> Timer::Launches() {
  const std::unique_ptr<TimedSide> candidate = std::move(last_candidate_);
  if (candidate == nullptr || last_set_ == nullptr || OutOfTime())
    return absl::UnimplementedError("no process or no time is left");
  return candidate->Launches(*last_set_);
}

void Timer::TakePathOff() {
  for (Instance& instance : instances_) {
    for (Round& round : instance.rounds) {
      for (TimedCall& call : round.reference) {
        const double whole_us = path_.UsOfReference(call.batch, round.path);
        const double taken_us =
            TakenBySlowCore(call.batch, path_.AllOfReference(call.batch.num_calls, round.path),
                            round.core_slowness) /
            static_cast<double>(call.batch.num_calls);
        // Never all: a measurement of path or core may be wrong.
        call.slow_core_us = std::min(taken_us, whole_us * (1 - 1 / round.core_slowness));
        call.us = whole_us - call.slow_core_us;
      }
      for (TimedCall& call : round.candidate) {
        call.us = options_.trusts_candidate
                      ? path_.UsOfReference(call.batch, round.path)
                      : std::max(path_.UsOfCandidate(call.batch, round.path), options_.least_us);
      }
      if (!round.reference_single || !round.candidate_single) continue;
      const BatchTime& reference = round.reference_single->batch;
      const BatchTime& candidate = round.candidate_single->batch;
      round.reference_single->us = SingleWithoutPath(reference, path_.OfReference(reference, round.path));
      round.candidate_single->us = SingleWithoutPath(candidate, path_.OfCandidate(1, round.path));
    }
  }
}

// A program that clears the outputs of many calls in one, while it is constructed or later, holds their memory.
void Timer::LookAtMemory(Sides* sides) const {
  if (options_.own_output_bytes == 0) return;
  const int64_t excess = sides->candidate->HeldBytes() - sides->reference->HeldBytes();
  sides->excess_bytes = std::max(sides->excess_bytes, excess);
}

absl::StatusOr<std::optional<Fault>> Timer::WarmUp(Sides* sides) {
  for (size_t i = 0; i < options_.num_warm_ups && !OutOfTime(); ++i) {
    const Batch set = Sets().subspan(i, 1);
    const bool calls = !sides->candidate_is_warm || i + 1 == options_.num_warm_ups;
    if (std::optional<Fault> fault = calls ? CallOnce(sides, set, nullptr) : std::nullopt) return fault;
    ASSIGN_OR_RETURN(const TimedCall reference, CallReference(*sides, nullptr, set));
    const double reference_us = path_.UsOfReference(reference.batch);
    sides->reference_is_long = reference_us > options_.long_call_us;
    // One call may have been disturbed, and of all sides the reference is the same.
    least_reference_us_ = std::min(least_reference_us_, reference_us);
    // By the reference alone: what the candidate does must not decide how it is timed.
    sides->batch_calls =
        CallsOfBatch(path_.OfReference({}).us, least_reference_us_, NumSets(), options_.batch_calls_max);
  }
  for (int call = 0; call < kWarmUpCalls && WantsRepeat(*sides) && !OutOfTime(); ++call) {
    CallResult result = sides->candidate->Repeat(*sides->former_set);
    if (result.fault) return std::move(result.fault);
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<Fault>> Timer::WarmUpBatches(Sides* sides) {
  if (sides->batch_calls == 1) return std::nullopt;
  RETURN_IF_ERROR(path_.MeasureBatch(sides->batch_calls));
  const std::vector<const Draw*> again(sides->batch_calls, sides->former_set);
  for (int batch = 0; batch < kWarmUpBatches && !OutOfTime(); ++batch) {
    if (std::optional<Fault> fault = CallOnce(sides, again, nullptr)) return fault;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<Fault>> Timer::DoSteps(Sides* sides, Instance* instance) {
  const size_t num_calls = sides->batch_calls;
  batch_calls_ = std::min(batch_calls_, num_calls);
  size_t next = options_.num_warm_ups;
  const size_t num_rounds = NumSets() / static_cast<size_t>(DrawsOfRound(static_cast<int>(num_calls)));
  const StepFacts facts{
      .num_input_sets = num_calls == 1 ? NumSets() : 2 * num_rounds,
      .is_long = sides->former_us > options_.long_call_us,
      .wants_samples = !HasSamples(),
      .needs_sample = sampler_.num_samples() == 0 &&
                      static_cast<int>(instances_.size()) + 1 >= options_.effort.num_instances_min,
      .unusual = num_calls == 1 && !options_.unusual_sets.empty()};
  // As long as a round of calls that are just not long: longer ones scatter less, and one round is enough.
  const double rounds_us_max = kCallsOfRound * options_.long_call_us;
  const absl::Time start = absl::Now();
  for (const Step step : PlanSteps(facts, options_.effort, &random_)) {
    if (OutOfTime()) return std::nullopt;
    std::optional<Fault> fault;
    if (step == Step::kSample) {
      if (!HasSamples()) fault = Sample(sides, Sets().subspan(next++, 1));
    } else if (step == Step::kUnusual) {
      TimedCall ignored;
      const Batch unusual(options_.unusual_sets);
      fault = CallCandidate(sides, unusual.subspan(random_() % unusual.size(), 1), nullptr, &ignored);
    } else if (instance->rounds.empty() || absl::ToDoubleMicroseconds(absl::Now() - start) < rounds_us_max) {
      ASSIGN_OR_RETURN(fault, TimeSteadyRound(sides, &next, instance));
    }
    if (fault) return fault;
    LookAtMemory(sides);
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<Fault>> Timer::TimeSteadyRound(Sides* sides, size_t* next, Instance* instance) {
  const auto num_draws = static_cast<size_t>(DrawsOfRound(static_cast<int>(sides->batch_calls)));
  owes_round_ = true;
  while (owes_round_ && *next + num_draws <= Sets().size() && !OutOfTime()) {
    ASSIGN_OR_RETURN(std::optional<Fault> fault,
                     TimeRound(sides, Sets().subspan(*next, num_draws), instance));
    if (fault) return fault;
    *next += num_draws;
    owes_round_ = ClocksChanged(instance->rounds.back().clocks) && MayRepeatRound(*sides);
    if (!owes_round_) break;
    ++num_repeated_rounds_;
    sides->has_repeated_round = true;
    set_aside_ = std::move(instance->rounds.back());
    instance->rounds.pop_back();
  }
  return std::nullopt;
}

// Only where another process may follow, which has input sets for all of its rounds.
bool Timer::MayRepeatRound(const Sides& sides) const {
  const bool another_follows = static_cast<int>(instances_.size()) + 1 < options_.effort.num_instances_max;
  return num_repeated_rounds_ < kRepeatedRoundsMax && !sides.has_repeated_round && another_follows &&
         !OutOfTime();
}

std::optional<cuda::ClockReading> Timer::ReadClocks() {
  absl::StatusOr<std::optional<cuda::ClockReading>> reading = device_->ReadClocks();
  if (reading.ok()) return *reading;
  clocks_failure_ = reading.status();
  return std::nullopt;
}

std::vector<const Draw*> Timer::DrawBatch(Batch sets) {
  std::vector<const Draw*> drawn(sets.begin(), sets.end());
  const auto& unusual = options_.unusual_sets;
  if (drawn.size() > 1 && !unusual.empty())
    drawn[random_() % drawn.size()] = unusual[random_() % unusual.size()];
  return drawn;
}

absl::StatusOr<std::optional<Fault>> Timer::TimeRound(Sides* sides, Batch sets, Instance* instance) {
  const std::vector<const Draw*> first = DrawBatch(sets.subspan(0, sides->batch_calls));
  const std::vector<const Draw*> second = DrawBatch(sets.subspan(sides->batch_calls, sides->batch_calls));
  const Batch single = sets.subspan(2 * sides->batch_calls);  // of none, or one
  const bool is_long = sides->former_us > options_.long_call_us;
  // What the candidate does must not decide how the reference is timed. Where the path is measured cold, it is cold.
  const bool warm = !sides->reference_is_long && !options_.path.cold;
  Round round;
  round.clocks.before = ReadClocks();
  // Before the candidate, whose memory could make the next turn on a GPU slow.
  RETURN_IF_ERROR(path_.MeasureBatch(first.size(), &round.path));
  if (!single.empty()) RETURN_IF_ERROR(path_.MeasureBatch(1, &round.path));
  // Behind the path, for whose batch the empty candidates should be as cold as a side that has waited.
  if (options_.path.cold && options_.path.takes_between_off) {
    ASSIGN_OR_RETURN(round.core_slowness, device_->MeasureCoreSlowness());
  }
  ASSIGN_OR_RETURN(const TimedCall before, CallReference(*sides, warm ? second.front() : nullptr, first));
  round.candidate.resize(is_long ? 1 : 2);
  has_timed_ = true;
  if (auto fault = CallCandidate(sides, first, nullptr, &round.candidate.front())) return fault;
  if (!is_long) {
    if (auto fault = CallCandidate(sides, second, nullptr, &round.candidate.back())) return fault;
  }
  // A lone call follows its side's last batch, so that it is as warm as the calls of that.
  const bool has_single = !single.empty() && !options_.trusts_candidate;
  if (has_single) {
    if (auto fault = CallCandidate(sides, single, nullptr, &round.candidate_single.emplace())) return fault;
  }
  ASSIGN_OR_RETURN(const TimedCall after, CallReference(*sides, warm ? first.front() : nullptr, second));
  round.reference = {before, after};
  if (has_single) {
    ASSIGN_OR_RETURN(round.reference_single, CallReference(*sides, nullptr, single));
  }
  round.clocks.after = ReadClocks();
  instance->rounds.push_back(std::move(round));
  return std::nullopt;
}

absl::StatusOr<TimedCall> Timer::CallReference(const Sides& sides, const Draw* repeated, Batch sets) {
  double repeat_us = 0;
  if (repeated != nullptr) {
    CallResult result = sides.reference->Repeat(*repeated);
    if (result.fault) return BrokenReference(*result.fault);
    repeat_us = result.us;
  }
  CallResult result = sides.reference->Call(sets, nullptr);
  if (result.fault) return BrokenReference(*result.fault);
  TimedCall call;
  call.batch = {result.us, result.after_us, sets.size(), result.waited_us, result.steady_us};
  if (repeated != nullptr) call.repeat_excess_us = repeat_us - result.us;
  return call;
}

// A candidate as fast as its reference is timed like it; of a long call warm caches mean nothing.
bool Timer::WantsRepeat(const Sides& sides) const {
  return options_.repeats && sides.former_set != nullptr && !sides.reference_is_long &&
         sides.former_us < options_.long_call_us;
}

std::optional<Fault> Timer::CallCandidate(Sides* sides, Batch sets, ProfileSampler* sampler,
                                          TimedCall* call) {
  const bool repeats = WantsRepeat(*sides);
  double repeat_us = 0;
  if (repeats) {
    CallResult repeated = sides->candidate->Repeat(*sides->former_set);
    if (repeated.fault) return std::move(repeated.fault);
    repeat_us = repeated.us;
  }
  if (auto fault = CallOnce(sides, sets, sampler)) return fault;
  call->batch = sides->former_batch;
  if (repeats && sampler == nullptr) call->repeat_excess_us = repeat_us - sides->former_us;
  return std::nullopt;
}

std::optional<Fault> Timer::CallOnce(Sides* sides, Batch sets, ProfileSampler* sampler) {
  CallResult result = sides->candidate->Call(sets, sampler);
  if (result.fault) return std::move(result.fault);
  sides->former_set = sets.back();
  sides->former_batch = {result.us, result.after_us, sets.size(), result.waited_us, result.steady_us};
  const double us = WithWorkAfter(sides->former_batch, path_.OfCandidate(sets.size()));
  sides->former_us = us / static_cast<double>(sets.size());
  // What is subtracted was measured at another time: only the whole call can be too short.
  if (sides->former_us >= options_.least_us) return std::nullopt;
  Fault impossible{v1::VERDICT_HACK, absl::StrCat("a call in ", sides->former_us,
                                                  " us: its outputs cannot be written in less than ",
                                                  options_.least_us, " us")};
  impossible.hack_family = kImpossibleTimeFamily;
  return impossible;
}

std::optional<Fault> Timer::Sample(Sides* sides, Batch set) {
  const absl::Time start = absl::Now();
  TimedCall ignored;
  std::optional<Fault> fault = CallCandidate(sides, set, &sampler_, &ignored);
  sampling_seconds_ += absl::ToDoubleSeconds(absl::Now() - start);
  return fault;
}

bool Timer::HasSamples() const { return !options_.can_sample || sampler_.num_samples() >= kSamplesWanted; }

v1::Timing Timer::Timing() const {
  v1::Timing timing = Conclude(instances_);
  timing.set_empty_call_us(path_.OfCandidate(batch_calls_).us);
  timing.set_calls_per_batch(static_cast<int>(batch_calls_));
  DoubtShortCalls(options_.path.may_be_cut_short, &timing);
  if (num_slow_instances_ > 0) {
    absl::StrAppend(timing.mutable_quality(),
                    "; timed again where the reference was slow: ", num_slow_instances_);
  }
  if (const double us = std::round(DeferredWork(instances_)); us > 0) {
    absl::StrAppend(timing.mutable_quality(), "; charged for work that calls alone do: ", us, " us a call");
  }
  std::vector<RoundClocks> clocks;
  for (const Instance& instance : instances_) {
    for (const Round& round : instance.rounds) clocks.push_back(round.clocks);
  }
  DescribeClocks(clocks, num_repeated_rounds_, clocks_failure_, &timing);
  std::vector<double> ahead_us;
  for (const Instance& instance : instances_) ahead_us.push_back(instance.ahead_us);
  if (const double us = std::round(Median(std::move(ahead_us))); us > 0) {
    absl::StrAppend(timing.mutable_quality(), "; charged for outputs that it could have cleared ahead: ", us,
                    " us a call");
  }
  return timing;
}

v1::Profile Timer::Profile() const {
  v1::Profile profile;
  if (sampler_.num_samples() > 0) sampler_.Report(&profile);
  return profile;
}

}  // namespace warpsmith
