// A timer while a GPU's clocks change.
#include <algorithm>
#include <set>
#include <utility>

#include "reward_service/referee/timer.h"
#include "tests/support/catch.h"
#include "tests/support/fake_timing_device.h"

namespace warpsmith {
namespace {

// Clocks that are read before and after each round, and lower at these readings, counted from 0.
auto LowerAt(const std::set<int>& readings) {
  return [readings](int reading) -> absl::StatusOr<std::optional<cuda::ClockReading>> {
    return readings.count(reading) > 0 ? cuda::ClockReading{1320, 2619, cuda::kReasonPowerCap}
                                       : cuda::ClockReading{1980, 2619, 0};
  };
}

// Two processes are enough: all calls take as long. Rounds have all the time there is.
TimerOptions TwoProcesses(size_t num_sets) {
  static const std::vector<Draw> sets(40);
  TimerOptions options;
  options.can_sample = false;
  for (size_t i = 0; i < num_sets; ++i) options.input_sets.push_back(&sets[i]);
  options.long_call_us = 1e9;
  options.effort.num_instances_min = 2;
  return options;
}

TEST_CASE("a round during which the clocks changed is timed again at once, on input sets that are new") {
  FakeTimingDevice device(Takes(210), Takes(60));
  // The candidate is slow in the first round, the clocks are lower at its end.
  device.candidate = [&](int call) {
    return Takes(device.num_started == 1 && (call == 1 || call == 2) ? 600 : 60)(call);
  };
  device.clocks = LowerAt({1});
  std::set<std::pair<int, const Draw*>> shown;
  device.shown_to_candidate = [&](Batch sets) {
    CHECK(shown.emplace(device.num_started, sets.front()).second);
  };
  Timer timer(&device, TwoProcesses(9));
  REQUIRE_FALSE(timer.Run()->has_value());
  const v1::Timing timing = timer.Timing();
  CHECK(device.num_started == 2);
  CHECK(timing.clocks().num_repeated_rounds() == 1);
  CHECK(timing.clocks().sm_mhz_min() == 1980);
  CHECK(timing.clocks().throttle_reasons().empty());
  CHECK(timing.candidate().num_calls() == 2 * 3 * 2);
  CHECK(timing.candidate().mean_us() == Approx(50));
  CHECK(timing.quality().empty());
}

TEST_CASE("where a process has no input sets left, a round is timed again in the next one") {
  // Three rounds take all sets. The first or the last round of the second process does not count.
  for (const int reading : {7, 11}) {
    FakeTimingDevice device(Takes(210), Takes(60));
    device.clocks = LowerAt({reading});
    Timer timer(&device, TwoProcesses(7));
    REQUIRE_FALSE(timer.Run()->has_value());
    CHECK(device.num_started == 3);
    CHECK(timer.Timing().clocks().num_repeated_rounds() == 1);
    CHECK(timer.Timing().candidate().num_calls() == (3 + 2 + 3) * 2);
    CHECK(timer.Timing().quality().empty());
  }
  // It was the process's only one.
  FakeTimingDevice device(Takes(210), Takes(60));
  device.clocks = LowerAt({1});
  Timer timer(&device, TwoProcesses(3));
  REQUIRE_FALSE(timer.Run()->has_value());
  CHECK(device.num_started == 3);
  CHECK(timer.Timing().candidate().num_instances() == 2);
  CHECK(timer.Timing().clocks().num_repeated_rounds() == 1);
}

TEST_CASE("clocks that never rest have so many rounds timed again, and then rounds count, which is told") {
  const auto run = [](size_t num_sets, int num_instances_max) {
    FakeTimingDevice device(Takes(210), Takes(60));
    device.clocks = [](int reading) { return LowerAt({reading | 1})(reading); };
    TimerOptions options = TwoProcesses(num_sets);
    options.effort.num_instances_max = num_instances_max;
    options.effort.num_instances_min = std::min(2, num_instances_max);
    Timer timer(&device, options);
    REQUIRE_FALSE(timer.Run()->has_value());
    CHECK(timer.Timing().speedup() == Approx(4));
    return timer.Timing();
  };
  const v1::Timing many = run(31, 9);
  CHECK(many.clocks().num_repeated_rounds() == kRepeatedRoundsMax);
  CHECK(many.clocks().sm_mhz_min() == 1320);
  CHECK(many.clocks().sm_mhz_max() == 1980);
  CHECK(many.clocks().throttle_reasons(0) == "power cap");
  CHECK(many.quality() == "; clocks changed during rounds that count: 6");
  const v1::Timing few = run(7, 9);  // a round of each of two processes, and then all of one
  CHECK(few.clocks().num_repeated_rounds() == kRepeatedRoundsMax);
  CHECK(few.candidate().num_instances() == 3);
  CHECK(few.quality() == "; clocks changed during rounds that count: 7");
  const v1::Timing last = run(3, 1);  // no other sets, and no other process
  CHECK(last.clocks().num_repeated_rounds() == 0);
  CHECK(last.quality() == "; clocks changed during rounds that count: 1");
}

TEST_CASE("a round during which the clocks changed is better than none in the time there is") {
  FakeTimingDevice device(Takes(210), Takes(60));
  device.clocks = LowerAt({1});
  device.start_seconds = 6;
  TimerOptions options = TwoProcesses(3);
  options.lane_seconds_max = 10;
  Timer timer(&device, options);
  REQUIRE_FALSE(timer.Run()->has_value());
  CHECK(device.num_started == 2);
  CHECK(timer.Timing().speedup() == Approx(4));
  CHECK(timer.Timing().clocks().num_repeated_rounds() == 0);
  CHECK(timer.Timing().quality() == "; clocks changed during rounds that count: 1");
}

TEST_CASE("a GPU that is slowed down all the time is no reason to time again, but is told") {
  FakeTimingDevice device(Takes(210), Takes(60));
  device.clocks = [](int) { return LowerAt({0})(0); };
  Timer timer(&device, TwoProcesses(9));
  REQUIRE_FALSE(timer.Run()->has_value());
  CHECK(timer.Timing().clocks().num_repeated_rounds() == 0);
  CHECK(timer.Timing().clocks().sm_mhz_max() == 1320);
  CHECK(timer.Timing().clocks().throttle_reasons(0) == "power cap");
  CHECK(timer.Timing().quality().empty());
}

TEST_CASE("clocks that cannot be read are missing, with the reason, and nothing is timed again") {
  FakeTimingDevice device(Takes(210), Takes(60));
  device.clocks = [](int) { return absl::NotFoundError("there is no NVML"); };
  Timer timer(&device, TwoProcesses(9));
  REQUIRE_FALSE(timer.Run()->has_value());
  CHECK(device.num_started == 2);
  CHECK_FALSE(timer.Timing().has_clocks());
  CHECK(timer.Timing().quality() == "; clocks are not known: there is no NVML");
}

}  // namespace
}  // namespace warpsmith
