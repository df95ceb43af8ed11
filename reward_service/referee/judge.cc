#include "reward_service/referee/judge.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/statistics.h"

namespace warpsmith {
namespace {

constexpr double kSlownessMax = 2;    // of the reference, against the fastest that it was seen
constexpr int kSlowInstancesMax = 3;  // then the machine has changed, not the process
// Long calls scatter less: one round is enough after this, and one call of the candidate a round.
constexpr double kInstanceSecondsMax = 0.03;
constexpr double kLongCallUs = 5000;
constexpr double kLatencyBoundUs = 20;
constexpr double kMemoryBoundShare = 0.5;
constexpr size_t kTailBytesMax = 2048;
constexpr size_t kProfiledCallsMax = 3;
constexpr int kProfileSamplesWanted = 60;

double Seconds(absl::Time since) { return absl::ToDoubleSeconds(absl::Now() - since); }

// The task's fault: the same reference ran before.
absl::Status BrokenReference(const Fault& fault) {
  return absl::InvalidArgumentError(absl::StrCat("the reference fails when it is timed: ", fault.reason));
}

}  // namespace

double Judge::LaneSeconds() const { return Seconds(lane_since_); }

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
  if (request_.kind == CandidateKind::kKernelBenchPython) {
    ASSIGN_OR_RETURN(source_fd_, SharedBuffer::SealedText(request_.source));
  }
  lane_since_ = absl::Now();
  ASSIGN_OR_RETURN(const bool verified, Verify());
  judgement_.seconds.verify = LaneSeconds();
  if (!verified) return absl::OkStatus();
  judgement_.outcome = Outcome::kCorrect;
  judgement_.reason = absl::StrCat("right on all ", judgement_.correctness.num_draws, " draws");
  if (request_.verify_only) return absl::OkStatus();
  const absl::Time waiting = absl::Now();
  RETURN_IF_ERROR(tools_.pool->Get(request_.task, /*for_timing=*/true, request_.seed, deadline_).status());
  judgement_.seconds.lane_wait = Seconds(waiting);
  const absl::Time timing = absl::Now();
  RETURN_IF_ERROR(Time().status());
  judgement_.seconds.time = Seconds(timing) - judgement_.seconds.profile;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Jail>> Judge::NextJail() {
  WarmParent* parent = request_.kind == CandidateKind::kNative ? tools_.native_parent : tools_.python_parent;
  const int cpu_seconds = std::max(1, static_cast<int>(request_.limits.cpu_seconds_max));
  ASSIGN_OR_RETURN(auto process, parent->ForkWithSpare({"python", tools_.jail_memory_bytes_max, cpu_seconds,
                                                        tools_.lane->num_threads()}));
  ASSIGN_OR_RETURN(Slots slots, task_->BorrowSlots(request_.kind));
  auto jail = std::make_unique<Jail>(std::move(process), std::move(slots), task_->layout(), request_.limits);
  RETURN_IF_ERROR(jail->process().AwaitHello(deadline_));
  return jail;
}

Program Judge::MakeProgram() const {
  Program program;
  program.kind = request_.kind;
  program.library_fd = request_.library_fd;
  program.source_fd = source_fd_.get();
  program.extension_fds = request_.extension_fds;
  program.init_inputs = task_->init_inputs();
  return program;
}

// Records what a candidate did wrong. Always false, so that callers may return it.
bool Judge::Convict(Fault fault, Jail* jail) {
  judgement_.outcome = fault.outcome;
  judgement_.reason = std::move(fault.reason);
  judgement_.hack_family = std::move(fault.hack_family);
  judgement_.input_mutated |= fault.input_mutated;
  judgement_.guard_touched |= fault.guard_touched;
  judgement_.out_of_bounds |= fault.out_of_bounds;
  if (jail != nullptr)
    judgement_.output_tail = Escape(jail->process().OutputTail(kTailBytesMax), kTailBytesMax);
  return false;
}

absl::StatusOr<bool> Judge::Verify() {
  ASSIGN_OR_RETURN(std::unique_ptr<Jail> jail, NextJail());
  if (auto fault = jail->Begin(MakeProgram(), tools_.lane)) return Convict(*std::move(fault), jail.get());
  for (const auto& draw : task_->verification_draws()) {
    const bool other_parameters = draw->parameter_seed != 0 && request_.kind != CandidateKind::kNative;
    if (other_parameters && !jail->parameters_loaded()) continue;
    if (!VerifyOne(*jail, *draw)) return false;
    scale_independent_right_ |= draw->own_distribution;
  }
  judgement_.output_tail = Escape(jail->process().OutputTail(kTailBytesMax), kTailBytesMax);
  task_->ReturnSlots(request_.kind, jail->TakeSlots());
  return true;
}

// Of a Python candidate after a call: its inputs as they were, and then gone, so that its outputs are its
// own.
bool Judge::TakeInputsBack(Jail& jail, const Draw& draw) {
  if (request_.kind == CandidateKind::kNative) return true;
  if (auto fault = jail.CheckBuffers(draw)) return Convict(*std::move(fault), &jail);
  jail.WithdrawInputs();
  return true;
}

// After a wrong output: whether it is right as long as the inputs are there. Then it is a view of them.
bool Judge::ConvictView(Jail& jail, const Draw& draw, size_t index) {
  if (request_.kind == CandidateKind::kNative) return false;
  jail.RestoreInputs(draw);
  const TensorSpec& spec = task_->layout().outputs[index];
  Fault fault;
  const absl::StatusOr<const void*> actual = jail.Output(index, fault);
  if (!actual.ok() || !AllRight(spec, draw.tolerances[index], draw.expected.get() + spec.offset, *actual))
    return false;
  Fault view{Outcome::kHack,
             absl::StrCat("output ", index, " is a view of an input; the reference's is not")};
  view.hack_family = kUnmaterialisedFamily;
  Convict(std::move(view), &jail);
  return true;
}

bool Judge::VerifyOne(Jail& jail, const Draw& draw) {
  jail.Load(draw);
  if (auto fault = jail.Run()) return Convict(*std::move(fault), &jail);
  if (!TakeInputsBack(jail, draw)) return false;
  CorrectnessNumbers& numbers = judgement_.correctness;
  ++numbers.num_draws;
  const auto& specs = task_->layout().outputs;
  for (size_t i = 0; i < specs.size(); ++i) {
    Fault fault;
    const absl::StatusOr<const void*> actual = jail.Output(i, fault);
    if (!actual.ok()) return Convict(std::move(fault), &jail);
    const Tolerance& tolerance = draw.tolerances[i];
    const Comparison result = Compare(specs[i], tolerance, draw.expected.get() + specs[i].offset, *actual);
    numbers.num_elements += result.num_elements;
    numbers.num_wrong += result.num_wrong;
    numbers.max_absolute_error = std::max(numbers.max_absolute_error, result.max_absolute_error);
    // Bounded, for infinity does not travel.
    const double relative_error =
        std::min(result.max_absolute_error / std::max(tolerance.spread, 1e-300), 1e300);
    numbers.max_relative_error = std::max(numbers.max_relative_error, relative_error);
    numbers.absolute_tolerance = tolerance.absolute;
    numbers.relative_tolerance = tolerance.relative;
    if (result.right()) continue;
    if (ConvictView(jail, draw, i)) return false;
    numbers.first_difference = absl::StrCat("output ", i, " ", result.first_difference);
    judgement_.output_unwritten = result.num_unwritten > 0;
    judgement_.wrong_at_scale_only = !draw.own_distribution && scale_independent_right_;
    const bool non_finite = result.num_non_finite > 0 && result.num_unwritten == 0;
    const std::string where = draw.own_distribution ? "" : absl::StrCat(" on ", draw.style, " inputs");
    return Convict({non_finite ? Outcome::kNonFinite : Outcome::kIncorrect,
                    absl::StrCat(result.num_wrong, " of ", result.num_elements, " elements wrong", where,
                                 "; ", numbers.first_difference)},
                   &jail);
  }
  return CheckGuards(jail, draw);
}

bool Judge::CheckGuards(Jail& jail, const Draw& draw) {
  if (request_.kind != CandidateKind::kNative) return true;
  if (auto fault = jail.CheckBuffers(draw)) return Convict(*std::move(fault), &jail);
  return true;
}

absl::StatusOr<bool> Judge::Time() {
  std::vector<Instance> instances;
  int num_slow = 0;
  while (static_cast<int>(instances.size()) < request_.timing.num_instances_max && !KnowEnough(instances)) {
    Instance instance;
    ASSIGN_OR_RETURN(const bool right, TimeInstance(static_cast<int>(instances.size()) + num_slow, instance));
    if (!right) return false;
    const double slowness = task_->reference_pace().Slowness(Median(instance.reference_us));
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

// The width of the interval decides, never its position: stopping when it looks good would favour luck.
bool Judge::KnowEnough(const std::vector<Instance>& instances) const {
  if (static_cast<int>(instances.size()) < request_.timing.num_instances_min) return false;
  if (LaneSeconds() > request_.limits.lane_seconds_max) return true;
  std::vector<std::vector<double>> ratios;
  for (const Instance& instance : instances) ratios.push_back(instance.ratios);
  return RatioInterval(ratios).relative_width() <= request_.timing.relative_width_max;
}

absl::StatusOr<bool> Judge::TimeInstance(int index, Instance& instance) {
  ASSIGN_OR_RETURN(std::unique_ptr<Jail> jail, NextJail());
  if (auto fault = jail->Begin(MakeProgram(), tools_.lane)) return Convict(*std::move(fault), jail.get());
  auto& baselines = task_->baselines();
  Jail& baseline = *baselines[static_cast<size_t>(index) % baselines.size()];
  RETURN_IF_ERROR(tools_.lane->Admit(baseline.process().pid()));
  // It has waited for long: what only masked loads read may have been taken from it.
  if (auto fault = baseline.Refresh()) return BrokenReference(*fault);
  const auto& draws = task_->timing_draws();
  std::vector<double> warm_up;
  if (!TimedCall(*jail, *draws[0], warm_up)) return false;
  RETURN_IF_ERROR(BaselineCall(baseline, *draws[0]).status());
  const bool is_long = warm_up[0] > kLongCallUs;
  size_t next = 1;
  const absl::Time start = absl::Now();
  for (int round = 0; round < request_.timing.num_rounds_max && next + 2 <= draws.size();
       ++round, next += 2) {
    if (round > 0 && Seconds(start) > kInstanceSecondsMax) break;
    std::vector<double> candidate;
    ASSIGN_OR_RETURN(const double before, BaselineCall(baseline, *draws[next]));
    if (!TimedCall(*jail, *draws[next], candidate)) return false;
    if (!is_long && !TimedCall(*jail, *draws[next + 1], candidate)) return false;
    ASSIGN_OR_RETURN(const double after, BaselineCall(baseline, *draws[next + 1]));
    instance.reference_us.insert(instance.reference_us.end(), {before, after});
    instance.candidate_us.insert(instance.candidate_us.end(), candidate.begin(), candidate.end());
    instance.ratios.push_back((before + after) / (candidate.front() + candidate.back()));
  }
  const absl::Time profiling = absl::Now();
  const bool right = ProfileCalls(*jail, next);
  judgement_.seconds.profile += Seconds(profiling);
  if (right) task_->ReturnSlots(request_.kind, jail->TakeSlots());
  return right;
}

bool Judge::TimedCall(Jail& jail, const Draw& draw, std::vector<double>& microseconds) {
  constexpr double kLeastUs = 0.1;
  const double empty_us = request_.kind == CandidateKind::kNative ? tools_.facts.empty_native_call_us
                                                                  : tools_.facts.empty_python_call_us;
  jail.Load(draw);
  if (auto fault = jail.Run()) return Convict(*std::move(fault), &jail);
  microseconds.push_back(std::max(jail.seconds() * 1e6 - empty_us, kLeastUs));
  return CheckTimed(jail, draw);
}

// What is in the outputs at the stop counts, on every timed call.
bool Judge::CheckTimed(Jail& jail, const Draw& draw) {
  if (!TakeInputsBack(jail, draw)) return false;
  const auto& specs = task_->layout().outputs;
  for (size_t i = 0; i < specs.size(); ++i) {
    Fault fault;
    const absl::StatusOr<const void*> actual = jail.Output(i, fault);
    if (!actual.ok()) return Convict(std::move(fault), &jail);
    const char* expected = draw.expected.get() + specs[i].offset;
    if (AllRight(specs[i], draw.tolerances[i], expected, *actual)) continue;
    const Comparison result = Compare(specs[i], draw.tolerances[i], expected, *actual);
    if (ConvictView(jail, draw, i)) return false;
    judgement_.output_unwritten = result.num_unwritten > 0;
    judgement_.correctness.num_wrong += result.num_wrong;
    judgement_.correctness.first_difference = absl::StrCat("output ", i, " ", result.first_difference);
    return Convict({Outcome::kIncorrect, absl::StrCat(result.num_wrong, " of ", result.num_elements,
                                                      " elements wrong in a later call; ",
                                                      judgement_.correctness.first_difference)},
                   &jail);
  }
  return CheckGuards(jail, draw);
}

absl::StatusOr<double> Judge::BaselineCall(Jail& baseline, const Draw& draw) {
  baseline.Load(draw);
  if (auto fault = baseline.Run()) return BrokenReference(*fault);
  return std::max(baseline.seconds() * 1e6 - tools_.facts.empty_python_call_us, 0.1);
}

// On draws that this jail has not seen, like any other call: it cannot know that these are watched.
bool Judge::ProfileCalls(Jail& jail, size_t first_draw) {
  if (!tools_.facts.profile) return true;
  if (sampler_ != nullptr && sampler_->num_samples() >= kProfileSamplesWanted) return true;
  const auto& draws = task_->timing_draws();
  auto sampler = ProfileSampler::Attach(jail.process().pid(), tools_.lane->core_list());
  if (!sampler.ok()) return true;
  std::vector<double> ignored;
  for (size_t i = first_draw; i < draws.size() && i < first_draw + kProfiledCallsMax; ++i) {
    if (!TimedCall(jail, *draws[i], ignored)) return false;
    (*sampler)->Collect();
    if ((*sampler)->num_samples() >= kProfileSamplesWanted) break;
  }
  if (sampler_ != nullptr) {
    sampler_->Merge(**sampler);
  } else {
    sampler_ = *std::move(sampler);
  }
  return true;
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
  timing.empty_call_us = request_.kind == CandidateKind::kNative ? tools_.facts.empty_native_call_us
                                                                 : tools_.facts.empty_python_call_us;
  timing.quality = tools_.lane->quality();
  if (timing.candidate.median_us < timing.empty_call_us / 2) {
    absl::StrAppend(&timing.quality, "; the call is shorter than half of an empty one");
    // The way of a Python call is long and runs in the candidate's own process, which could have cut it
    // short: what is left after its subtraction cannot show that the candidate is faster.
    if (request_.kind == CandidateKind::kKernelBenchPython) {
      timing.speedup = std::min(timing.speedup, 1.0);
      timing.speedup_low = std::min(timing.speedup_low, 1.0);
      timing.distinguishable = false;
    }
  }
  judgement_.timing = timing;
}

void Judge::ReportProfile() {
  ProfileNumbers profile;
  if (sampler_ != nullptr) {
    const bool native = request_.kind == CandidateKind::kNative;
    sampler_->Report(native ? tools_.native_path_samples : tools_.python_path_samples, profile);
  }
  profile.gigabytes_per_second_ceiling = tools_.facts.gigabytes_per_second_ceiling;
  const double median_us = judgement_.timing->candidate.median_us;
  profile.gigabytes_per_second = static_cast<double>(judgement_.bytes_per_call) / (median_us * 1e3);
  const double share = profile.gigabytes_per_second / std::max(profile.gigabytes_per_second_ceiling, 1e-9);
  profile.bound = median_us < kLatencyBoundUs ? "latency" : share >= kMemoryBoundShare ? "memory" : "compute";
  judgement_.profile = profile;
}

}  // namespace warpsmith
