// Judge's second half: timing against the baseline, and the profile.
#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "reward_service/measure/statistics.h"
#include "reward_service/referee/judge.h"

namespace warpsmith {
namespace {

constexpr double kSlownessMax = 2;    // of the reference, against the fastest that it was seen
constexpr int kSlowInstancesMax = 3;  // then the machine has changed, not the process
// Long calls scatter less: one round is enough after this, and one call of the candidate a round.
constexpr double kInstanceSecondsMax = 0.03;
constexpr double kLongCallUs = 5000;
constexpr int kSettlingCalls = 3;
constexpr double kLatencyBoundUs = 20;
constexpr double kMemoryBoundShare = 0.5;
constexpr size_t kWatchedCallsMax = 3;
constexpr double kLeastUs = 0.1;            // of a call, when what an empty one costs is subtracted
constexpr double kNearestCacheFactor = 16;  // its bandwidth over that of copying in memory, generously
constexpr int kProfileSamplesWanted = 60;
constexpr int kSmallTaskSamples = 300;
// What being sampled costs a call at most, with its interrupts and what these take from the caches: on an AMD
// EPYC 620 us took 1,000 to 1,300, and 200 us 330 to 590.
constexpr double kWatchedFactor = 2.5;
constexpr double kWatchedUs = 300;
// One or two of more are slow where the machine had something else to do.
constexpr int kSlowCallsMin = 3;

double Seconds(absl::Time since) { return absl::ToDoubleSeconds(absl::Now() - since); }

// The task's fault: the same reference ran before.
absl::Status BrokenReference(const Fault& fault) {
  return absl::InvalidArgumentError(absl::StrCat("the reference fails when it is timed: ", fault.reason));
}

}  // namespace

bool Judge::Coin() { return (std::random_device()() & 1) != 0; }

absl::StatusOr<bool> Judge::Time() {
  std::vector<Instance> instances;
  int num_slow = 0;
  const auto rate = task_->is_small() ? ProfileSampler::Rate::kDense : ProfileSampler::Rate::kUsual;
  sampler_ = std::make_unique<ProfileSampler>(rate);
  path_sampler_ = std::make_unique<ProfileSampler>(rate);
  while (static_cast<int>(instances.size()) < request_.timing.num_instances_max && !KnowEnough(instances)) {
    Instance instance;
    ASSIGN_OR_RETURN(const bool right, TimeInstance(static_cast<int>(instances.size()) + num_slow, instance));
    if (!right) return false;
    const double slowness =
        task_->reference_pace().Slowness(Median(instance.reference_us) + reference_path_us_);
    if (slowness > kSlownessMax && num_slow < kSlowInstancesMax) {
      ++num_slow;  // the next one is timed against another process of the reference
      continue;
    }
    // Whether the machine became slow, for both, or something slows the reference alone, is not known here:
    // only as much counts as the reference could excuse.
    if (slowness > kSlownessMax) {
      for (double& ratio : instance.ratios) ratio *= kSlownessMax / slowness;
    }
    instances.push_back(std::move(instance));
  }
  ReportTiming(instances);
  if (num_slow > 0) {
    absl::StrAppend(&judgement_.timing->quality, "; timed again where the reference was slow: ", num_slow);
  }
  ReportProfile();
  return true;
}

// Whatever the work is, its outputs must be written, and a core's nearest cache takes no more than this.
double Judge::LeastMicroseconds() const {
  int64_t num_bytes = 0;
  for (const TensorSpec& spec : task_->layout().outputs) num_bytes += spec.borrowed ? 0 : spec.num_bytes;
  const double bytes_per_us =
      tools_.facts.gigabytes_per_second_ceiling * 1e3 * kNearestCacheFactor * tools_.lane->num_threads();
  return std::max(kLeastUs, bytes_per_us > 0 ? static_cast<double>(num_bytes) / bytes_per_us : 0);
}

// The width of the interval decides, never its position: stopping when it looks good would favour luck.
bool Judge::KnowEnough(const std::vector<Instance>& instances) const {
  if (static_cast<int>(instances.size()) < request_.timing.num_instances_min) return false;
  if (LaneSeconds() > request_.limits.lane_seconds_max) return true;
  std::vector<std::vector<double>> ratios;
  for (const Instance& instance : instances) ratios.push_back(instance.ratios);
  return RatioInterval(ratios).relative_width() <= request_.timing.relative_width_max;
}

// One process of the candidate beside one of the reference: warm calls, then timed rounds, watched calls and
// one on inputs of another kind, in an order that the candidate cannot know.
absl::StatusOr<bool> Judge::TimeInstance(int index, Instance& instance) {
  auto& baselines = task_->baselines();
  Jail& baseline = *baselines[static_cast<size_t>(index) % baselines.size()];
  ASSIGN_OR_RETURN(std::unique_ptr<Jail> jail, NextJail(&baseline));
  if (auto fault = jail->Begin(MakeProgram(tools_.lane->num_threads()), tools_.lane))
    return Convict(*std::move(fault), jail.get());
  watched_.clear();
  RETURN_IF_ERROR(tools_.lane->Admit(baseline.process().pid()));
  RETURN_IF_ERROR(MeasurePaths());
  // It has waited for long: what only masked loads read may have been taken from it.
  if (auto fault = baseline.Refresh()) return BrokenReference(*fault);
  const auto& draws = TimingDraws();
  ASSIGN_OR_RETURN(const bool warm, WarmUp(*jail, baseline, instance));
  if (!warm) return false;
  size_t next = num_warm_ups();
  const absl::Time start = absl::Now();
  bool was_watched = false;
  for (const Step step : Plan(draws.size() - next, instance.is_long)) {
    bool right = true;
    if (step == Step::kWatched) {
      if (was_watched && KnowWhoseWork()) continue;
      was_watched = true;
      ASSIGN_OR_RETURN(right, WatchedCall(*jail, baseline, *draws[next++]));
    } else if (step == Step::kUnusual) {
      right = UnusualCall(*jail);
    } else if (instance.ratios.empty() || Seconds(start) < kInstanceSecondsMax) {
      ASSIGN_OR_RETURN(right, Round(*jail, baseline, {draws[next], draws[next + 1]}, instance));
      next += 2;
    }
    if (!right) return false;
  }
  CompareWatched(instance);
  task_->ReturnBuffers(jail->TakeBuffers());
  return true;
}

// The fastest so far: what a busy moment adds must not be subtracted from the calls of quiet ones.
absl::Status Judge::MeasurePaths() {
  ASSIGN_OR_RETURN(const double reference_us, tools_.empty_python->Microseconds());
  reference_path_us_ = std::min(reference_path_us_, reference_us);
  double us = reference_us;
  if (request_.kind == CandidateKind::kNative) {
    ASSIGN_OR_RETURN(us, tools_.empty_native->Microseconds());
  }
  path_us_ = std::min(path_us_, us);
  return absl::OkStatus();
}

const std::vector<const Draw*>& Judge::TimingDraws() const {
  return takes_parameters_ ? task_->timing_draws() : task_->construction_draws();
}

// Calls that are not timed. Some are watched, so that nobody can have his first calls done by others.
absl::StatusOr<bool> Judge::WarmUp(Jail& jail, Jail& baseline, Instance& instance) {
  std::vector<double> microseconds;
  const int num_samples_before = sampler_->num_samples();
  for (size_t i = 0; i < num_warm_ups(); ++i) {
    const Draw& draw = *TimingDraws()[i];
    // What a small task costs when its way is cold is no measure of it.
    const bool watched = i > 0 && !task_->is_small() && Coin();
    if (!(watched ? WatchedAndTimedCall(jail, draw, microseconds) : TimedCall(jail, draw, microseconds)))
      return false;
    ASSIGN_OR_RETURN(const double reference_us, BaselineCall(baseline, draw));
    reference_is_long_ = reference_us > kLongCallUs;
  }
  // A fresh process's first calls are slower by some percent, and the baseline had many.
  for (int call = 0; call < kSettlingCalls; ++call) {
    if (!Rewarm(jail)) return false;
  }
  for (Watched& watched : watched_) watched.warm_up = true;
  num_warm_up_samples_ = sampler_->num_samples() - num_samples_before;
  instance.is_long = microseconds.back() > kLongCallUs;
  return true;
}

// Answers of a Python candidate lie in two places that change by turns: both must have been there once.
size_t Judge::num_warm_ups() const {
  return request_.kind == CandidateKind::kKernelBenchPython && takes_parameters_ ? 2 : 1;
}

std::vector<Judge::Step> Judge::Plan(size_t num_draws, bool is_long) const {
  const size_t num_rounds =
      std::clamp<size_t>(num_draws / 2, 1, static_cast<size_t>(request_.timing.num_rounds_max));
  std::vector<Step> steps(num_rounds, Step::kRound);
  // One in every process even when enough is known: none would move the timed calls to the front.
  size_t num_watched = task_->is_small() ? num_draws : KnowWhoseWork() ? 1 : kWatchedCallsMax;
  if (!tools_.facts.profile) num_watched = 0;
  bool unusual = takes_parameters_;
  // Of long calls one of both will do: which, the candidate cannot know.
  if (is_long && KnowWhoseWork() && num_watched > 0 && unusual) {
    unusual = Coin();
    num_watched = unusual ? 0 : 1;
  }
  steps.resize(num_rounds + std::min(num_draws - 2 * num_rounds, num_watched), Step::kWatched);
  if (unusual) steps.push_back(Step::kUnusual);
  std::shuffle(steps.begin(), steps.end(), std::random_device());
  return steps;
}

bool Judge::KnowWhoseWork() const {
  // Those of the warm-up are not yet known to be of calls like the timed ones.
  return sampler_->num_samples() - num_warm_up_samples_ >=
         (task_->is_small() ? kSmallTaskSamples : kProfileSamplesWanted);
}

// Reference, candidate, candidate, reference.
absl::StatusOr<bool> Judge::Round(Jail& jail, Jail& baseline, std::array<const Draw*, 2> draws,
                                  Instance& instance) {
  std::vector<double> candidate;
  // Whoever takes no other parameters gets no credit: it is watched while it is timed, for want of draws.
  const auto call = takes_parameters_ ? &Judge::TimedCall : &Judge::WatchedAndTimedCall;
  // See Rewarm(). What the candidate does must not decide how the reference is timed.
  const bool warm_first = !reference_is_long_;
  if (warm_first) RETURN_IF_ERROR(BaselineCall(baseline, *draws[1]).status());
  ASSIGN_OR_RETURN(const double before, BaselineCall(baseline, *draws[0]));
  if (!(this->*call)(jail, *draws[0], candidate)) return false;
  if (!instance.is_long && !(this->*call)(jail, *draws[1], candidate)) return false;
  if (warm_first) RETURN_IF_ERROR(BaselineCall(baseline, *draws[0]).status());
  ASSIGN_OR_RETURN(const double after, BaselineCall(baseline, *draws[1]));
  instance.reference_us.insert(instance.reference_us.end(), {before, after});
  instance.candidate_us.insert(instance.candidate_us.end(), candidate.begin(), candidate.end());
  instance.ratios.push_back((before + after) / (candidate.front() + candidate.back()));
  return true;
}

bool Judge::TimedCall(Jail& jail, const Draw& draw, std::vector<double>& microseconds) {
  return Rewarm(jail) && Call(jail, draw, microseconds);
}

// Who was not the last to run finds other code in the caches, and the way of a Python call is long: brought
// back from memory it would cost more than many a task. So it is gone once more just before, on what was seen
// already; the answer is checked with the next one.
bool Judge::Rewarm(Jail& jail) {
  // A candidate as fast as its reference is timed like it; one far slower does not notice.
  if (request_.kind == CandidateKind::kNative || former_draw_ == nullptr || reference_is_long_ ||
      former_us_ >= 2 * kLongCallUs) {
    return true;
  }
  jail.Load(*former_draw_);
  if (auto fault = jail.Run()) return Convict(*std::move(fault), &jail);
  return true;
}

bool Judge::Call(Jail& jail, const Draw& draw, std::vector<double>& microseconds) {
  jail.Load(draw);
  if (auto fault = jail.Run()) return Convict(*std::move(fault), &jail);
  former_us_ = jail.seconds() * 1e6;
  const double least_us = LeastMicroseconds();
  // What is subtracted was measured at another time: only the whole call can be too short.
  if (former_us_ < least_us) {
    Fault impossible{Outcome::kHack,
                     absl::StrCat("a call in ", former_us_,
                                  " us: its outputs cannot be written in less than ", least_us, " us")};
    impossible.hack_family = kImpossibleTimeFamily;
    return Convict(std::move(impossible), &jail);
  }
  microseconds.push_back(std::max(former_us_ - path_us_, least_us));
  return CheckTimed(jail, draw);
}

EmptyCandidate& Judge::empty_candidate() const {
  return request_.kind == CandidateKind::kNative ? *tools_.empty_native : *tools_.empty_python;
}

absl::StatusOr<double> Judge::BaselineCall(Jail& baseline, const Draw& draw) {
  baseline.Load(draw);
  if (auto fault = baseline.Run()) return BrokenReference(*fault);
  return std::max(baseline.seconds() * 1e6 - reference_path_us_, kLeastUs);
}

absl::StatusOr<bool> Judge::WatchedCall(Jail& jail, Jail& baseline, const Draw& draw) {
  if (task_->is_small()) RETURN_IF_ERROR(WatchedBaselineCall(baseline, draw));
  std::vector<double> ignored;
  RETURN_IF_ERROR(empty_candidate().WatchCall(*path_sampler_));
  return WatchedAndTimedCall(jail, draw, ignored);
}

// Beside the candidate's, in the same state of the machine.
absl::Status Judge::WatchedBaselineCall(Jail& baseline, const Draw& draw) {
  RETURN_IF_ERROR(BaselineCall(baseline, draw).status());
  if (!reference_sampler_.Attach(baseline.process().pid(), tools_.lane->core_list()).ok())
    return absl::OkStatus();
  RETURN_IF_ERROR(BaselineCall(baseline, draw).status());
  reference_sampler_.Collect();
  // Of the reference alone: the candidate could wish to be sampled less.
  if (reference_sampler_.ring_was_full()) {
    for (ProfileSampler* sampler :
         {&reference_sampler_, &reference_path_sampler_, sampler_.get(), path_sampler_.get()})
      sampler->Slacken();
  }
  return tools_.empty_python->WatchCall(reference_path_sampler_);
}

bool Judge::WatchedAndTimedCall(Jail& jail, const Draw& draw, std::vector<double>& microseconds) {
  const absl::Time start = absl::Now();
  if (!Rewarm(jail)) return false;
  const bool watched = sampler_->Attach(jail.process().pid(), tools_.lane->core_list(), former_us_).ok();
  if (!Call(jail, draw, microseconds)) return false;
  if (watched) watched_.push_back({sampler_->Collect(), microseconds.back(), /*warm_up=*/false});
  judgement_.seconds.profile += Seconds(start);
  return true;
}

// A watched call that takes much longer than the timed ones is another kind of call: its samples say nothing
// of what was timed. Of small tasks this is not known: being watched costs more than the call.
void Judge::CompareWatched(const Instance& instance) {
  const double us_max = kWatchedFactor * Median(instance.candidate_us) + kWatchedUs;
  num_warm_up_samples_ = 0;
  for (const Watched& watched : std::exchange(watched_, {})) {
    const bool slow = !task_->is_small() && watched.us > us_max;
    if (slow) sampler_->SetAside(watched.call);
    num_watched_ += !watched.warm_up;
    num_slow_watched_ += slow && !watched.warm_up;
  }
}

// So that a candidate which knows that it is past its verification must still be right about anything.
bool Judge::UnusualCall(Jail& jail) {
  std::vector<const Draw*> unusual;
  for (const Draw* draw : task_->verification_draws()) {
    if (!draw->own_distribution) unusual.push_back(draw);
  }
  if (unusual.empty()) return true;
  std::uniform_int_distribution<size_t> any(0, unusual.size() - 1);
  std::random_device random;
  const Draw& draw = *unusual[any(random)];
  // As before every other call: a repeated one would announce these by being absent.
  if (!Rewarm(jail)) return false;
  jail.Load(draw);
  if (auto fault = jail.Run()) return Convict(*std::move(fault), &jail);
  return CheckTimed(jail, draw);
}

void Judge::ReportTiming(const std::vector<Instance>& instances) {
  std::vector<double> reference;
  std::vector<double> candidate;
  std::vector<std::vector<double>> ratios;
  for (const Instance& instance : instances) {
    reference.insert(reference.end(), instance.reference_us.begin(), instance.reference_us.end());
    candidate.insert(candidate.end(), instance.candidate_us.begin(), instance.candidate_us.end());
    ratios.push_back(instance.ratios);
  }
  const int num_instances = static_cast<int>(instances.size());
  const Interval interval = RatioInterval(ratios);
  TimingNumbers timing;
  timing.reference =
      Summarise(reference, std::min<int>(num_instances, static_cast<int>(task_->baselines().size())));
  timing.candidate = Summarise(candidate, num_instances);
  timing.speedup = interval.middle;
  timing.speedup_low = interval.low;
  timing.speedup_high = interval.high;
  timing.distinguishable = IsDistinguishable(interval);
  timing.empty_call_us = path_us_;
  timing.quality = tools_.lane->quality();
  timing.parameters_fixed = !takes_parameters_;
  const bool python = request_.kind == CandidateKind::kKernelBenchPython;
  if (timing.candidate.median_us < (python ? 1.0 : 0.5) * timing.empty_call_us) {
    absl::StrAppend(&timing.quality, "; the call is shorter than ", python ? "" : "half of ", "an empty one");
    // The way of a Python call is long and runs in the candidate's own process, which could have cut it
    // short: what is left after its subtraction cannot show that the candidate is faster.
    if (python && timing.speedup > 1.0) {
      timing.speedup = 1.0;
      timing.speedup_low = std::min(timing.speedup_low, 1.0);
      timing.distinguishable = false;
    }
  }
  judgement_.timing = timing;
}

// Time that a call spends in libraries, over what one of the reference does, both without their paths.
double Judge::LibraryWork() const {
  const TimingNumbers& timing = *judgement_.timing;
  const auto library_us = [](const ProfileSampler& of_call, double us, const ProfileSampler& of_path,
                             double path_us) {
    return of_call.LibraryShare() * (us + path_us) - of_path.LibraryShare() * path_us;
  };
  const double candidate =
      library_us(*sampler_, timing.candidate.median_us, *path_sampler_, timing.empty_call_us);
  const double reference =
      library_us(reference_sampler_, timing.reference.median_us, reference_path_sampler_, reference_path_us_);
  return std::max(candidate, 0.0) / std::max(reference, kLeastUs);
}

void Judge::ReportProfile() {
  ProfileNumbers profile;
  if (sampler_->num_samples() > 0) {
    sampler_->Report(path_sampler_->PerCall(), profile);
    if (reference_sampler_.num_samples() > 0) profile.library_work = LibraryWork();
  }
  if (num_slow_watched_ > 0 && num_slow_watched_ >= std::min(kSlowCallsMin, num_watched_))
    profile.slow_call_share = num_slow_watched_ / static_cast<double>(num_watched_);
  profile.gigabytes_per_second_ceiling = tools_.facts.gigabytes_per_second_ceiling;
  const double median_us = judgement_.timing->candidate.median_us;
  profile.gigabytes_per_second = static_cast<double>(judgement_.bytes_per_call) / (median_us * 1e3);
  const double share = profile.gigabytes_per_second / std::max(profile.gigabytes_per_second_ceiling, 1e-9);
  profile.bound = median_us < kLatencyBoundUs ? "latency" : share >= kMemoryBoundShare ? "memory" : "compute";
  judgement_.profile = profile;
}

}  // namespace warpsmith
