#include "reward_service/referee/timing_plan.h"

#include <algorithm>
#include <cmath>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

Instance InstanceOf(int num_rounds, double reference_us, double candidate_us) {
  Instance instance;
  for (int i = 0; i < num_rounds; ++i) {
    instance.rounds.push_back({{{reference_us}, {reference_us}}, {{candidate_us}, {candidate_us}}});
  }
  return instance;
}

std::vector<Instance> Instances(int num_instances, double reference_us, double candidate_us) {
  return std::vector<Instance>(static_cast<size_t>(num_instances), InstanceOf(3, reference_us, candidate_us));
}

size_t CountOf(const std::vector<Step>& steps, Step step) {
  return static_cast<size_t>(std::count(steps.begin(), steps.end(), step));
}

TEST_CASE("a batch lasts as many empty calls as it should, by the time of one call") {
  CHECK(CallsOfBatch(1000, kOneCallUsMin, 100, 16) == 2);
  CHECK(CallsOfBatch(10, kOneCallUsMin, 100, 16) == 1);
  CHECK(CallsOfBatch(10, kBatchFactor * 10 / 3, 100, 16) == 3);
  CHECK(CallsOfBatch(10, kBatchFactor * 10 / 2.5, 100, 16) == 3);
  CHECK(CallsOfBatch(10, 1e9, 100, 16) == 1);
  CHECK(CallsOfBatch(0, 5, 100, 16) == 2);  // all but the first are timed on the device
  CHECK(CallsOfBatch(0, 5, 100, 1) == 1);
}

TEST_CASE("a batch has no more calls than are allowed, or than the input sets of one round give") {
  CHECK(CallsOfBatch(10, 1, 100, 16) == 16);
  CHECK(CallsOfBatch(10, 1, 100, 1) == 1);
  CHECK(CallsOfBatch(10, 1, 7, 16) == 3);
  for (const size_t num_input_sets : {5, 6, 7, 8, 33}) {
    const size_t num_calls = CallsOfBatch(10, 1, num_input_sets, 16);
    CHECK(num_calls > 1);
    CHECK(static_cast<size_t>(DrawsOfRound(static_cast<int>(num_calls))) <= num_input_sets);
  }
  for (const size_t num_input_sets : {0, 2, 4}) CHECK(CallsOfBatch(10, 1, num_input_sets, 16) == 1);
}

TEST_CASE("a plan has the rounds that effort and input sets give, and never none") {
  std::mt19937_64 random(1);
  const TimingEffort effort{.num_rounds_max = 3};
  CHECK(CountOf(PlanSteps({.num_input_sets = 9}, effort, &random), Step::kRound) == 3);
  CHECK(CountOf(PlanSteps({.num_input_sets = 5}, effort, &random), Step::kRound) == 2);
  CHECK(CountOf(PlanSteps({.num_input_sets = 2}, effort, &random), Step::kRound) == 1);
}

TEST_CASE("what is taken off for a slow core makes the interval wider, by a quarter of it") {
  const auto interval = [](double slow_core_us) {
    Instance instance;
    const TimedCall reference{.us = 50, .slow_core_us = slow_core_us};
    instance.rounds.push_back({.reference = {reference, reference}, .candidate = {TimedCall{.us = 10}}});
    return WithDoubtOfPace({instance}, {.middle = 5, .low = 4, .high = 6});
  };
  CHECK(interval(0).low == 4);
  CHECK(interval(40).low == Approx(4 / 1.2));
  CHECK(interval(40).high == Approx(6 * 1.2));
  CHECK(interval(40).middle == 5);
}

TEST_CASE("a slow core takes from what a reference did itself, as far as its device did not hide it") {
  const BatchTime bound_by_launches{.us = 1100, .num_calls = 16};
  CHECK(TakenBySlowCore(bound_by_launches, 500, 1) == 0);
  CHECK(TakenBySlowCore(bound_by_launches, 500, 1.5) == Approx(200));
  CHECK(TakenBySlowCore(bound_by_launches, 2000, 1.5) == 0);
  const BatchTime bound_by_device{.us = 3000, .num_calls = 16, .waited_us = 1900};
  CHECK(TakenBySlowCore(bound_by_device, 500, 1.5) == 0);
  const BatchTime between{.us = 1100, .num_calls = 16, .waited_us = 60};
  CHECK(TakenBySlowCore(between, 500, 1.5) == Approx(120));
}

TEST_CASE("what is ahead is the memory over the reference's, of what a round writes") {
  CHECK(ShareAhead(-1, 100, 4) == 0);
  CHECK(ShareAhead(100, 100, 4) == Approx(0.25));
  CHECK(ShareAhead(5000, 100, 4) == 1);
  std::vector<Instance> instances = Instances(5, 100, 40);
  for (Instance& instance : instances) instance.ahead_us = 10;
  CHECK(Conclude(instances).speedup() == Approx(2));
  CHECK(Conclude(instances).candidate().median_us() == Approx(50));
}

TEST_CASE("calls to be sampled take what input sets the rounds leave, where samples are wanted") {
  std::mt19937_64 random(1);
  const TimingEffort effort{.num_rounds_max = 3};
  const auto samples = [&](size_t sets, bool wanted) {
    return CountOf(PlanSteps({.num_input_sets = sets, .wants_samples = wanted}, effort, &random),
                   Step::kSample);
  };
  CHECK(samples(9, false) == 0);
  CHECK(samples(9, true) == 3);
  CHECK(samples(7, true) == 1);
  CHECK(samples(6, true) == 0);
}

TEST_CASE("a long call is sampled or made on unusual inputs, not both, and either comes up") {
  std::mt19937_64 random(1);
  size_t num_unusual = 0;
  for (int i = 0; i < 100; ++i) {
    const auto steps = PlanSteps(
        {.num_input_sets = 9, .is_long = true, .wants_samples = true, .unusual = true}, {}, &random);
    const size_t unusual = CountOf(steps, Step::kUnusual);
    CHECK(unusual + CountOf(steps, Step::kSample) == 1);
    num_unusual += unusual;
  }
  CHECK(num_unusual > 20);
  CHECK(num_unusual < 80);
}

TEST_CASE("a long call is sampled where no process before has shown whose work it is") {
  std::mt19937_64 random(1);
  size_t num_unusual = 0;
  for (int process = 0; process < 20; ++process) {
    const auto steps = PlanSteps(
        {.num_input_sets = 9, .is_long = true, .wants_samples = true, .needs_sample = true, .unusual = true},
        {}, &random);
    CHECK(CountOf(steps, Step::kSample) == 1);
    num_unusual += CountOf(steps, Step::kUnusual);
  }
  CHECK(num_unusual > 2);
  CHECK(num_unusual < 18);
}

TEST_CASE("the order of steps cannot be known: an unusual call comes first, last and between") {
  std::mt19937_64 random(1);
  std::vector<int> places(4, 0);
  for (int i = 0; i < 200; ++i) {
    const auto steps = PlanSteps({.num_input_sets = 6, .unusual = true}, {}, &random);
    REQUIRE(steps.size() == 4);
    ++places[static_cast<size_t>(std::find(steps.begin(), steps.end(), Step::kUnusual) - steps.begin())];
  }
  for (const int count : places) CHECK(count > 20);
}

TEST_CASE("the speed-up is the reference's time over the candidate's") {
  const v1::Timing timing = Conclude(Instances(5, 100, 40));
  CHECK(timing.speedup() == Approx(2.5));
  CHECK(timing.distinguishable());
  CHECK(timing.reference().median_us() == Approx(100));
  CHECK(timing.candidate().median_us() == Approx(40));
  CHECK(timing.candidate().num_calls() == 30);
  CHECK(timing.candidate().num_instances() == 5);
}

TEST_CASE("what repeated calls take more than timed ones is charged, beyond what the reference's do") {
  std::vector<Instance> instances = Instances(5, 100, 20);
  const auto repeats = [&](double reference_excess_us, double candidate_excess_us) {
    for (Instance& instance : instances) {
      for (Round& round : instance.rounds) {
        for (TimedCall& call : round.reference) call.repeat_excess_us = reference_excess_us;
        for (TimedCall& call : round.candidate) call.repeat_excess_us = candidate_excess_us;
      }
    }
    return Conclude(instances).speedup();
  };
  CHECK(repeats(0, 0) == Approx(5));
  CHECK(repeats(30, 30) == Approx(5));  // both are colder then
  CHECK(repeats(30, 0) == Approx(5));   // nothing is given for less
  CHECK(repeats(0, 30) == Approx(2));   // 100 / (20 + 30)
  CHECK(repeats(10, 40) == Approx(2));
}

TEST_CASE("a candidate without repeated calls is charged nothing") {
  std::vector<Instance> instances = Instances(5, 100, 20);
  for (Instance& instance : instances) {
    for (Round& round : instance.rounds) {
      for (TimedCall& call : round.reference) call.repeat_excess_us = -50;
    }
  }
  CHECK(Conclude(instances).speedup() == Approx(5));
}

// Three rounds of batches in each instance, and of each side a call alone.
std::vector<Instance> WithSingles(double reference_us, double candidate_us, double reference_single_us,
                                  double candidate_single_us) {
  std::vector<Instance> instances = Instances(5, reference_us, candidate_us);
  for (Instance& instance : instances) {
    for (Round& round : instance.rounds) {
      round.reference_single = TimedCall{reference_single_us};
      round.candidate_single = TimedCall{candidate_single_us};
    }
  }
  return instances;
}

TEST_CASE("a call alone may take twice what one of a batch does, and what the reference's takes more") {
  CHECK(DeferredWork(Instances(5, 100, 20)) == 0);
  CHECK(DeferredWork(WithSingles(100, 20, 100, 40)) == 0);
  CHECK(DeferredWork(WithSingles(100, 20, 130, 70)) == 0);
  CHECK(DeferredWork(WithSingles(100, 20, 90, 20)) == 0);
  CHECK(DeferredWork(WithSingles(100, 20, 100, 100)) == Approx(60));
  CHECK(Conclude(WithSingles(100, 20, 100, 100)).speedup() == Approx(100.0 / 80));
  CHECK(Conclude(WithSingles(100, 20, 100, 100)).candidate().median_us() == Approx(80));
}

TEST_CASE("what a first call costs Torch's process excuses no native candidate") {
  const auto charge = [](double steady_us) {
    std::vector<Instance> instances = WithSingles(100, 2.5, 400, 40);  // sixteen calls in one launch of 40 us
    for (Instance& instance : instances)
      for (Round& round : instance.rounds)
        for (TimedCall& call : round.reference) call.batch.steady_us = steady_us;
    return DeferredWork(instances);
  };
  CHECK(charge(/*steady_us=*/100) == Approx(40 - 2 * 2.5));
  CHECK(charge(/*steady_us=*/0) == 0);
}

TEST_CASE(
    "what may be chance by the reference is no work that was put off; what the candidate scatters excuses "
    "nothing") {
  const auto scattered = [](double reference_us, double candidate_us) {
    std::vector<Instance> instances = WithSingles(100, 20, 100, 100);
    for (size_t i = 0; i < instances.size(); ++i) {
      for (size_t k = 0; k < instances[i].rounds.size(); ++k) {
        const double sign = static_cast<double>((i + k) % 3) - 1;
        instances[i].rounds[k].reference_single->us += reference_us * sign;
        instances[i].rounds[k].candidate_single->us += candidate_us * sign;
      }
    }
    return DeferredWork(instances);
  };
  CHECK(scattered(90, 0) == 0);
  CHECK(scattered(10, 0) == Approx(60 - std::sqrt(2) * 10));
  CHECK(scattered(0, 90) == Approx(60));
  CHECK(scattered(0, 1e6) == Approx(60));
}

TEST_CASE("a reference that was slow earns its candidate no more than it could excuse") {
  std::vector<Instance> instances = Instances(5, 400, 40);
  for (Instance& instance : instances) instance.reference_slowness = 2;
  CHECK(Conclude(instances).speedup() == Approx(5));
}

TEST_CASE("it is enough when the interval is narrow, not before the least number of instances") {
  const TimingEffort effort{.num_instances_min = 5, .relative_width_max = 0.05};
  CHECK_FALSE(IsEnough({}, effort));
  CHECK_FALSE(IsEnough(Instances(4, 100, 40), effort));
  CHECK(IsEnough(Instances(5, 100, 40), effort));
  std::vector<Instance> scattered;
  for (int i = 0; i < 6; ++i) scattered.push_back(InstanceOf(3, 100, 30 + 5 * i));
  CHECK_FALSE(IsEnough(scattered, effort));
}

TEST_CASE("a call shorter than an empty one shows no speed-up where the path may be cut short") {
  v1::Timing timing = Conclude(Instances(5, 100, 20));
  timing.set_empty_call_us(30);
  timing.set_calls_per_batch(1);
  v1::Timing native = timing;
  DoubtShortCalls(/*may_be_cut_short=*/true, &timing);
  CHECK(timing.speedup() == 1.0);
  CHECK_FALSE(timing.distinguishable());
  CHECK(timing.quality() == "; the call is shorter than an empty one");
  DoubtShortCalls(/*may_be_cut_short=*/false, &native);
  CHECK(native.speedup() == Approx(5));
  CHECK(native.quality() == "; the call is shorter than an empty one");
}

TEST_CASE("calls of a batch are short only if all of them together are") {
  v1::Timing timing = Conclude(Instances(5, 100, 20));
  timing.set_empty_call_us(30);
  timing.set_calls_per_batch(2);
  DoubtShortCalls(/*may_be_cut_short=*/true, &timing);
  CHECK(timing.speedup() == Approx(5));
  CHECK(timing.quality().empty());
}

}  // namespace
}  // namespace warpsmith
