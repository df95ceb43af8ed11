#include "reward_service/referee/timing_plan.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace warpsmith {
namespace {

// Of what was taken off for a slow core, so much may be wrong: other judgements see other cores.
constexpr double kPaceDoubt = 0.25;

double Mean(const std::vector<TimedCall>& calls) {
  double sum = 0;
  for (const TimedCall& call : calls) sum += call.us;
  return sum / static_cast<double>(calls.size());
}

double MeanSlowCore(const std::vector<TimedCall>& calls) {
  double sum = 0;
  for (const TimedCall& call : calls) sum += call.slow_core_us;
  return sum / static_cast<double>(calls.size());
}

void AppendExcess(const TimedCall& call, std::vector<double>* to) {
  if (call.repeat_excess_us) to->push_back(*call.repeat_excess_us);
}

// What a repeated call of the candidate takes more than the timed one, beyond what one of the reference does.
double HiddenWork(const std::vector<Instance>& instances) {
  std::vector<double> reference;
  std::vector<double> candidate;
  for (const Instance& instance : instances) {
    for (const Round& round : instance.rounds) {
      for (const TimedCall& call : round.reference) AppendExcess(call, &reference);
      for (const TimedCall& call : round.candidate) AppendExcess(call, &candidate);
    }
  }
  if (candidate.empty()) return 0;
  return std::max(0.0, Median(std::move(candidate)) - Median(std::move(reference)));
}

// What a call of the candidate is charged for work that was not on its clock.
double ChargeOf(const std::vector<Instance>& instances) {
  return HiddenWork(instances) + DeferredWork(instances);
}

// Of a batch, where a round has so many input sets.
size_t CallsOfRoundMax(size_t num_input_sets) { return num_input_sets < 5 ? 1 : (num_input_sets - 1) / 2; }

}  // namespace

size_t CallsOfBatch(double empty_call_us, double call_us, size_t num_input_sets, size_t calls_max) {
  const double least = calls_max > 1 && call_us < kOneCallUsMin ? 2 : 1;
  const double wanted = std::max(least, std::ceil(kBatchFactor * empty_call_us / call_us));
  const auto possible = static_cast<double>(std::min(calls_max, CallsOfRoundMax(num_input_sets)));
  return static_cast<size_t>(std::clamp(wanted, 1.0, std::max(1.0, possible)));
}

double TakenBySlowCore(const BatchTime& batch, double path_us, double core_slowness) {
  const double own_us = std::max(0.0, batch.us - batch.waited_us - path_us);
  return std::max(0.0, own_us * (1 - 1 / core_slowness) - batch.waited_us);
}

double DeferredWork(const std::vector<Instance>& instances) {
  std::vector<double> reference, reference_batched, candidate, batched;
  for (const Instance& instance : instances) {
    for (const Round& round : instance.rounds) {
      if (!round.reference_single || !round.candidate_single) continue;
      // On the core as it was: what it takes of both is no difference between them.
      reference.push_back(round.reference_single->us + round.reference_single->slow_core_us);
      const bool is_like_candidate = round.reference.front().batch.steady_us <= 0;
      reference_batched.push_back(is_like_candidate ? Mean(round.reference) + MeanSlowCore(round.reference)
                                                    : reference.back());
      candidate.push_back(round.candidate_single->us);
      batched.push_back(Mean(round.candidate));
    }
  }
  if (batched.empty()) return 0;
  // Of both medians, each as well known as the reference's: what the candidate scatters is its own doing.
  const double chance = std::sqrt(2) * MedianError(reference);
  const double excused = Median(std::move(reference)) - Median(std::move(reference_batched)) + chance;
  return std::max(0.0, Median(std::move(candidate)) - excused - 2 * Median(std::move(batched)));
}

std::vector<Step> PlanSteps(const StepFacts& facts, const TimingEffort& effort, std::mt19937_64* random) {
  const size_t num_rounds =
      std::clamp<size_t>(facts.num_input_sets / 2, 1, static_cast<size_t>(effort.num_rounds_max));
  std::vector<Step> steps(num_rounds, Step::kRound);
  const size_t num_left = facts.num_input_sets - std::min(facts.num_input_sets, 2 * num_rounds);
  size_t num_samples = facts.wants_samples ? num_left : 0;
  bool unusual = facts.unusual;
  if (facts.is_long && unusual && num_samples > 0) {
    unusual = ((*random)() & 1) != 0;
    num_samples = unusual && !facts.needs_sample ? 0 : 1;
  }
  steps.insert(steps.end(), num_samples, Step::kSample);
  if (unusual) steps.push_back(Step::kUnusual);
  std::shuffle(steps.begin(), steps.end(), *random);
  return steps;
}

double ShareAhead(int64_t excess_bytes, int64_t output_bytes, int num_calls) {
  if (excess_bytes <= 0) return 0;
  const double all_bytes = static_cast<double>(output_bytes) * num_calls;
  return std::min(1.0, static_cast<double>(excess_bytes) / all_bytes);
}

std::vector<std::vector<double>> Ratios(const std::vector<Instance>& instances) {
  const double charge_us = ChargeOf(instances);
  std::vector<std::vector<double>> ratios;
  for (const Instance& instance : instances) {
    ratios.emplace_back();
    for (const Round& round : instance.rounds) {
      const double candidate_us = Mean(round.candidate) + charge_us + instance.ahead_us;
      ratios.back().push_back(Mean(round.reference) / (candidate_us * instance.reference_slowness));
    }
  }
  return ratios;
}

bool IsEnough(const std::vector<Instance>& instances, const TimingEffort& effort) {
  return static_cast<int>(instances.size()) >= effort.num_instances_min &&
         RatioInterval(Ratios(instances)).relative_width() <= effort.relative_width_max;
}

double ReferenceMedian(const Instance& instance) {
  std::vector<double> us;
  for (const Round& round : instance.rounds) {
    for (const TimedCall& call : round.reference) us.push_back(call.us);
  }
  return Median(std::move(us));
}

Interval WithDoubtOfPace(const std::vector<Instance>& instances, Interval interval) {
  std::vector<double> shares;
  for (const Instance& instance : instances) {
    for (const Round& round : instance.rounds)
      shares.push_back(MeanSlowCore(round.reference) / Mean(round.reference));
  }
  const double factor = 1 + kPaceDoubt * Median(std::move(shares));
  interval.low /= factor;
  interval.high *= factor;
  return interval;
}

v1::Timing Conclude(const std::vector<Instance>& instances) {
  const double charge_us = ChargeOf(instances);
  std::vector<double> reference;
  std::vector<double> candidate;
  for (const Instance& instance : instances) {
    for (const Round& round : instance.rounds) {
      for (const TimedCall& call : round.reference) reference.push_back(call.us);
      for (const TimedCall& call : round.candidate) {
        candidate.push_back(call.us + charge_us + instance.ahead_us);
      }
    }
  }
  const int num_instances = static_cast<int>(instances.size());
  const Interval interval = WithDoubtOfPace(instances, RatioInterval(Ratios(instances)));
  v1::Timing timing;
  *timing.mutable_reference() = Summarise(reference, num_instances);
  *timing.mutable_candidate() = Summarise(candidate, num_instances);
  timing.set_speedup(interval.middle);
  timing.set_speedup_low(interval.low);
  timing.set_speedup_high(interval.high);
  timing.set_distinguishable(IsDistinguishable(interval));
  return timing;
}

absl::Status BrokenReference(const Fault& fault) {
  return absl::InvalidArgumentError(absl::StrCat("the reference fails when it is timed: ", fault.reason));
}

void DoubtShortCalls(bool may_be_cut_short, v1::Timing* timing) {
  if (timing->candidate().median_us() * timing->calls_per_batch() >= timing->empty_call_us()) return;
  absl::StrAppend(timing->mutable_quality(), "; the call is shorter than an empty one");
  if (!may_be_cut_short || timing->speedup() <= 1.0) return;
  timing->set_speedup(1.0);
  timing->set_speedup_low(std::min(timing->speedup_low(), 1.0));
  timing->set_distinguishable(false);
}

}  // namespace warpsmith
