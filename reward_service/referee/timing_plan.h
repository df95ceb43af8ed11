// How a candidate is timed beside its reference, as pure functions of numbers: what to call next, when it is
// enough, what counts.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TIMING_PLAN_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TIMING_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "reward_service/measure/judge_request.h"
#include "reward_service/measure/statistics.h"
#include "reward_service/referee/process/fault.h"
#include "reward_service/referee/round_clocks.h"
#include "reward_service/referee/timed_side.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// A call is long that takes as long as so many empty ones of a Python program: what the path to it scatters is then
// below a hundredth, and warm caches mean nothing to it. One of the candidate a round, none repeated.
inline constexpr double kLongCallFactor = 100;

// A batch lasts at least so many times what an empty call does: what its first call pays for cold caches and page
// tables of a GPU is less than an empty call.
inline constexpr double kBatchFactor = 30;

// After as many a fresh process takes as long as later: its first calls are slower by some percent.
inline constexpr int kWarmUpCalls = 3;

// As many calls make a batch of at least that length, for a reference whose call took `call_us` at the least: at most
// `calls_max`, and a round of batches takes no more than `num_input_sets`. At least one, which is a round of calls; or
// two, where so many may be, of calls of less than kOneCallUsMin.
size_t CallsOfBatch(double empty_call_us, double call_us, size_t num_input_sets, size_t calls_max);

// Of the reference's calls the first are not timed on the device: one costs its process some 300 us more than others, a
// hundredth of such a call.
inline constexpr double kOneCallUsMin = 20'000;

// A batch of calls on the clock, with the path to the program: to its answer, and from there to the proof that the
// device is idle.
struct BatchTime {
  double us = 0;
  double after_us = 0;
  size_t num_calls = 1;
  // By the word of the process: it waited so long for the device when all calls were made, which is part of `us`; and a
  // call took so long there, but for the first third of them, or 0: nobody tells.
  double waited_us = 0;
  double steady_us = 0;
};

// One call on the clock [us], without the overhead of a call, and how much longer the call just before it
// took, which repeated an earlier one to warm the caches; absent where none did. What it is computed from.
struct TimedCall {
  double us = 0;
  std::optional<double> repeat_excess_us = std::nullopt;
  BatchTime batch = {};
  double slow_core_us = 0;  // what was taken off for a slow core
};

// What the path cost when a round began, by calls of a batch. What slows the core changes within some tenths of a
// second, and slows path and sides alike: so a path measured beside a side says more of it than that of all rounds.
using RoundPath = std::map<size_t, Overhead>;

// Reference, candidate, candidate, reference; of a long call, the candidate once.
struct Round {
  std::vector<TimedCall> reference;
  std::vector<TimedCall> candidate;
  // Where these are batches: of each side a call that no other follows.
  std::optional<TimedCall> reference_single = std::nullopt;
  std::optional<TimedCall> candidate_single = std::nullopt;
  RoundClocks clocks = {};   // around all of these
  RoundPath path = {};       // before them, where it is measured so often
  double core_slowness = 1;  // likewise, of TimingDevice::MeasureCoreSlowness()
};

// What a batch of the reference took longer because the core was slow [us]. `path_us` is all of the path's. What its
// process did itself, before it waited for the device, would have been done sooner; as much as the device was behind
// hides that. A candidate's word of its wait is not believed: only the reference is excused.
double TakenBySlowCore(const BatchTime& batch, double path_us, double core_slowness);

// One process of the candidate beside one of the reference.
struct Instance {
  std::vector<Round> rounds;
  // The reference's time over the least that it was ever seen to take, where that is far more: only as much
  // counts as the reference could excuse.
  double reference_slowness = 1;
  // Added to each of the candidate's calls [us]: what it saved by outputs that it may have cleared ahead.
  double ahead_us = 0;
};

// What a timed process does after its warm calls.
enum class Step {
  kRound,
  kSample,   // one call whose instructions are sampled
  kUnusual,  // one call on inputs of another distribution
};

struct StepFacts {
  size_t num_input_sets = 0;   // that this process has not seen
  bool is_long = false;        // a call of the candidate
  bool wants_samples = false;  // of what input sets the rounds leave
  bool needs_sample = false;   // there is none, and this process may be the last
  bool unusual = false;        // whether there are input sets of another distribution
};

// The steps of one process, in an order that nobody can know: at least one round, and as many as the effort
// asks for and `facts.num_input_sets` give. A long call is sampled, or made on unusual inputs, by lot; both where a
// sample is needed.
std::vector<Step> PlanSteps(const StepFacts& facts, const TimingEffort& effort, std::mt19937_64* random);

// Calls of the candidate in one round: two, each after a repeated one.
inline constexpr int kCandidateCallsOfRound = 2 * 2;

// Returns how much of clearing its outputs a process may have done ahead, from 0 to 1: it held `excess_bytes` more
// than the reference's. All, where that is the outputs of `num_calls`. Without batches these are the calls of a round:
// a call that clears those of more than a round is in fewer than half of all rounds, and not in their median.
double ShareAhead(int64_t excess_bytes, int64_t output_bytes, int num_calls);

// Returns what a call of the candidate in a batch left to others [us]. Alone, a call takes its launch and its work one
// after the other; among others it takes at least the longer of the two. So alone it takes at most twice as long, and
// of a process like the reference's what lone calls of the reference take more than its others. Where the reference
// tells a steady time, the candidate is native: what a first call costs Torch's process says nothing of it, and what
// one costs its own is on the path. What is beyond that, as far as it is not chance by the scatter of the reference, is
// charged: a call that leaves next to all of its work to others is charged as if it were alone.
double DeferredWork(const std::vector<Instance>& instances);

// Ratios of the rounds of each instance, reference over candidate. Work that a candidate does in repeated
// calls, whose time is not its own, is charged: what a repeated call takes more than the timed one, beyond
// what the reference's takes more, by the median of all rounds.
std::vector<std::vector<double>> Ratios(const std::vector<Instance>& instances);

// Returns whether the interval of the speed-up is as narrow as the effort asks for. Its width decides, and not its
// position: stopping when it looks good would favour luck.
bool IsEnough(const std::vector<Instance>& instances, const TimingEffort& effort);

// The interval of a speed-up, wider by a quarter of what was taken off the reference for a slow core, over what was
// left: one judgement's rounds do not show what of that is wrong.
Interval WithDoubtOfPace(const std::vector<Instance>& instances, Interval interval);

// Times of both sides, the speed-up and its interval, without overhead and quality. At least one round.
v1::Timing Conclude(const std::vector<Instance>& instances);

// The task's fault: the same reference ran before.
absl::Status BrokenReference(const Fault& fault);

// Says in `timing->quality` where the calls of a batch are shorter than an empty one. Where the candidate may have cut
// its path short, what is left after that path's subtraction cannot show that it is faster than its reference.
void DoubtShortCalls(bool may_be_cut_short, v1::Timing* timing);

// Median time of the reference over the rounds of one instance [us].
double ReferenceMedian(const Instance& instance);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TIMING_PLAN_H_
