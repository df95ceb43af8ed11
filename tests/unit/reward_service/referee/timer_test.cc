#include "reward_service/referee/timer.h"

#include <algorithm>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/fake_timing_device.h"

namespace warpsmith {
namespace {

Fault Broken() { return {v1::VERDICT_INCORRECT, "wrong"}; }

TimerOptions Options(size_t num_sets = 9) {
  static const std::vector<Draw> sets(40);
  TimerOptions options;
  options.can_sample = false;
  options.long_call_us = 5000;
  for (size_t i = 0; i < num_sets; ++i) options.input_sets.push_back(&sets[i]);
  return options;
}

TEST_CASE("no call that counts is sampled, on either side") {
  FakeTimingDevice device(Takes(210), Takes(60));
  TimerOptions options = Options();
  options.can_sample = true;
  Timer timer(&device, options);
  REQUIRE_FALSE(timer.Run()->has_value());
  CHECK(device.num_unsampled >= timer.Timing().candidate().num_calls());
  CHECK(device.num_unsampled_of_reference >= timer.Timing().reference().num_calls());
}

TEST_CASE("of a slow program, which is sampled or called on unusual inputs, one call at least is sampled") {
  const Draw unusual;
  for (int judgement = 0; judgement < 100; ++judgement) {
    int num_calls = 0;
    FakeTimingDevice device(Takes(6000), [&](int call) {
      ++num_calls;
      return Takes(6000)(call);
    });
    TimerOptions options = Options();
    options.can_sample = true;
    options.unusual_sets = {&unusual};
    Timer timer(&device, options);
    REQUIRE_FALSE(timer.Run()->has_value());
    REQUIRE(device.num_started == options.effort.num_instances_min);
    CHECK(num_calls > device.num_unsampled);
  }
}

TEST_CASE("the speed-up is without what a call costs that does nothing") {
  FakeTimingDevice device(Takes(210), Takes(60));
  Timer timer(&device, Options());
  REQUIRE_FALSE(timer.Run()->has_value());
  CHECK(timer.Timing().speedup() == Approx(4));
  CHECK(timer.Timing().empty_call_us() == 10);
  CHECK(device.num_started == 5);
}

TEST_CASE("a process that is warm makes the last of the calls that warm it up again, for it has waited") {
  for (const bool is_warm : {false, true}) {
    std::vector<const Draw*> shown;
    FakeTimingDevice device(Takes(210), Takes(60));
    device.is_warm = is_warm;
    device.shown_to_candidate = [&](Batch sets) { shown.push_back(sets.front()); };
    TimerOptions options = Options();
    options.num_warm_ups = 2;
    Timer timer(&device, options);
    REQUIRE_FALSE(timer.Run()->has_value());
    const size_t num_left_out = is_warm ? 1 : 0;
    CHECK(shown.at(0) == options.input_sets[num_left_out]);
    CHECK(shown.at(2 - num_left_out) == options.input_sets[2]);
    CHECK(timer.Timing().speedup() == Approx(4));
  }
}

TEST_CASE("when timing is over its last process says what it launches, once, and as long as there is time") {
  FakeTimingDevice device(Takes(210), Takes(60));
  std::vector<int> asked;
  device.launches = [&](int process) {
    asked.push_back(process);
    v1::Profile profile;
    profile.set_num_launches(7);
    return profile;
  };
  Timer timer(&device, Options());
  CHECK(absl::IsUnimplemented(timer.Launches().status()));  // nothing was timed
  REQUIRE_FALSE(timer.Run()->has_value());
  CHECK(timer.Launches()->num_launches() == 7);
  CHECK(asked == std::vector<int>{device.num_started});
  CHECK(absl::IsUnimplemented(timer.Launches().status()));

  Timer late(&device, Options());
  REQUIRE_FALSE(late.Run()->has_value());
  device.lane_seconds = 1e3;
  CHECK(absl::IsUnimplemented(late.Launches().status()));
  CHECK(asked.size() == 1);
}

TEST_CASE("calls are made in batches thirty times as long as an empty call") {
  const auto batches = [](double empty_us, size_t batch_calls_max) {
    FakeTimingDevice device(Takes(200 + empty_us), Takes(100 + empty_us));
    device.overhead = {{empty_us, 0}, {empty_us, 0}};
    TimerOptions options = Options();
    options.batch_calls_max = batch_calls_max;
    options.path.cold = true;
    Timer timer(&device, options);
    REQUIRE_FALSE(timer.Run()->has_value());
    const std::vector<size_t>& sizes = device.reference_side.num_sets;
    CHECK(sizes.front() == 1);  // which warms up
    const size_t batch = *std::max_element(sizes.begin(), sizes.end());
    // Each takes as long as one call, so each of its calls takes a part of that.
    CHECK(timer.Timing().reference().median_us() == Approx(200.0 / static_cast<double>(batch)));
    CHECK(timer.Timing().speedup() == Approx(2));
    CHECK(timer.Timing().calls_per_batch() == static_cast<int>(batch));
    return batch;
  };
  CHECK(batches(5, 1) == 1);
  CHECK(batches(6, 8) == 2);  // no fewer, for the reference's first is not timed on its device
  CHECK(batches(10, 8) == 2);
  CHECK(batches(18, 8) == 3);
  // There are eight input sets beside that of the warm-up: two batches a round, and a call alone.
  CHECK(batches(500, 8) == 3);
  CHECK(batches(500, 3) == 3);
  CHECK(batches(500, 1) == 1);
}

TEST_CASE("each batch that counts has one unusual input set, the same for both sides, and lone calls follow") {
  const Draw unusual;
  std::vector<std::vector<const Draw*>> shown, of_reference;
  FakeTimingDevice device(Takes(300), Takes(160));
  device.overhead = {{100, 0}, {100, 0}};
  device.shown_to_candidate = [&](Batch sets) { shown.emplace_back(sets.begin(), sets.end()); };
  device.reference_side.shown = [&](Batch sets) { of_reference.emplace_back(sets.begin(), sets.end()); };
  TimerOptions options = Options(10);
  options.unusual_sets = {&unusual};
  options.batch_calls_max = 4;
  options.path.cold = true;
  options.effort = {.num_instances_min = 1, .num_instances_max = 1};
  Timer timer(&device, options);
  REQUIRE_FALSE(timer.Run()->has_value());
  // A call and two batches warm the candidate up; then come two batches, and a call alone.
  REQUIRE(shown.size() == 6);
  for (const size_t batch : {3, 4}) {
    CHECK(shown[batch].size() == 4);
    CHECK(std::count(shown[batch].begin(), shown[batch].end(), &unusual) == 1);
  }
  CHECK(shown[5].size() == 1);
  REQUIRE(of_reference.size() == 4);
  CHECK(of_reference[1] == shown[3]);
  CHECK(of_reference[2] == shown[4]);
  CHECK(of_reference[3] == shown[5]);
}

TEST_CASE("a program that puts work off to the last call of a batch is charged what calls alone take") {
  constexpr double kEmptyUs = 100, kWorkUs = 80;
  // Every call of the reference takes as long; the candidate's release does, of however many calls.
  FakeTimingDevice device(Takes(0), Takes(kEmptyUs + kWorkUs));
  device.overhead = {{kEmptyUs, 0}, {kEmptyUs, 0}};
  device.reference_side.us_of_batch = [&](size_t num_calls) {
    return kEmptyUs + static_cast<double>(num_calls) * kWorkUs;
  };
  TimerOptions options = Options(10);
  options.batch_calls_max = 4;
  options.path.cold = true;
  Timer timer(&device, options);
  REQUIRE_FALSE(timer.Run()->has_value());
  // 80 us alone, twice the 20 of a batch of four are excused, and the rest is charged.
  CHECK(timer.Timing().candidate().median_us() == Approx(60));
  CHECK(timer.Timing().speedup() == Approx(kWorkUs / 60));
  CHECK(timer.Timing().quality() == "; charged for work that calls alone do: 40 us a call");
}

TEST_CASE(
    "what the reference's process waited for its device is not taken off with what is between its calls") {
  constexpr double kEmptyUs = 100, kFurtherUs = 7;
  const auto reference_us = [&](double waited_us, bool takes_between_off) {
    FakeTimingDevice device(
        [=](int) {
          return CallResult{kEmptyUs + 800, std::nullopt, 0, waited_us};
        },
        Takes(kEmptyUs + 400));
    device.overhead = {{kEmptyUs, 0}, {kEmptyUs, 0}};
    device.further_call_us = kFurtherUs;
    TimerOptions options = Options(10);
    options.batch_calls_max = 4;
    options.path = {.cold = true, .takes_between_off = takes_between_off};
    Timer timer(&device, options);
    REQUIRE_FALSE(timer.Run()->has_value());
    return timer.Timing().reference().median_us();
  };
  CHECK(reference_us(0, true) == Approx((800 - 3 * kFurtherUs) / 4));
  CHECK(reference_us(500, true) == Approx(200));
  CHECK(reference_us(0, false) == Approx(200));
}

TEST_CASE("a reference that its core slows is timed as on a fast one, and a candidate as it is") {
  const auto timing = [](bool takes_between_off) {
    // Every other round on a core that takes twice as long.
    const auto slowness = [](int round) { return round % 2 == 0 ? 1.0 : 2.0; };
    FakeTimingDevice* timed = nullptr;
    FakeTimingDevice device(
        [&](int) {
          const bool is_slow = timed->num_paces > 0 && timed->num_paces % 2 == 0;
          return CallResult{.us = is_slow ? 410.0 : 210.0};
        },
        Takes(60));
    timed = &device;
    device.core_slowness = slowness;
    TimerOptions options = Options();
    options.path = {.cold = true, .takes_between_off = takes_between_off};
    Timer timer(&device, options);
    REQUIRE_FALSE(timer.Run()->has_value());
    return timer.Timing();
  };
  CHECK(timing(true).reference().median_us() == Approx(200));
  CHECK(timing(true).reference().standard_deviation_us() == Approx(0).margin(1e-6));
  CHECK(timing(true).speedup() == Approx(4));
  CHECK(timing(false).speedup() ==
        Approx(4));  // of a Python program, whose core is as slow: nothing is measured
}

TEST_CASE("where processes cool down, a batch is without what one that does nothing costs between others") {
  constexpr double kEmptyUs = 100, kColdUs = 60;
  FakeTimingDevice device(Takes(kEmptyUs + kColdUs + 800), Takes(kEmptyUs + kColdUs + 400));
  device.overhead = {{kEmptyUs, 0}, {kEmptyUs, 0}};
  device.cold_us = [](int measurement) { return measurement == 2 ? 10 * kColdUs : kColdUs; };
  TimerOptions options = Options(10);
  options.batch_calls_max = 4;
  options.path.cold = true;
  Timer timer(&device, options);
  REQUIRE_FALSE(timer.Run()->has_value());
  CHECK(device.num_cold > 2);
  CHECK(timer.Timing().reference().median_us() == Approx(200));
  CHECK(timer.Timing().candidate().median_us() == Approx(100));
  CHECK(timer.Timing().empty_call_us() == Approx(kEmptyUs + kColdUs));
}

TEST_CASE("memory for the outputs of all calls costs what clearing them would") {
  TimerOptions options = Options();
  options.own_output_bytes = 1000;
  options.clear_us = 50;
  const auto speedup = [&](int64_t bytes_of_reference, std::function<int64_t(int call)> bytes) {
    FakeTimingDevice device(Takes(210), Takes(60));
    device.reference_side.held_bytes = [=](int) { return bytes_of_reference; };
    device.held_bytes = std::move(bytes);
    Timer timer(&device, options);
    REQUIRE_FALSE(timer.Run()->has_value());
    return timer.Timing().speedup();
  };
  CHECK(speedup(5000, [](int) { return 5000; }) == Approx(4));
  CHECK(speedup(9000, [](int) { return 5000; }) == Approx(4));
  CHECK(speedup(5000, [](int) { return 1'005'000; }) == Approx(2));
  // Once it was cleared, whenever that was, and gone before the end.
  CHECK(speedup(5000, [](int call) { return call < 3 ? 1'005'000 : 5000; }) == Approx(2));
  CHECK(speedup(5000, [](int call) { return call == 5 ? 1'005'000 : 5000; }) == Approx(2));
}

TEST_CASE("a fault of the candidate ends the timing, wherever it comes") {
  for (int call = 0; call < 6; ++call) {
    FakeTimingDevice device(Takes(100), [call](int i) {
      return i == call ? CallResult{50, Broken()} : CallResult{50, std::nullopt};
    });
    Timer timer(&device, Options());
    const auto fault = timer.Run();
    REQUIRE(fault.ok());
    REQUIRE(fault->has_value());
    CHECK((*fault)->reason == "wrong");
  }
  FakeTimingDevice device(Takes(100), Takes(50));
  device.start_fault = Broken();
  CHECK((*Timer(&device, Options()).Run())->reason == "wrong");
}

TEST_CASE("a fault of the reference is the task's") {
  FakeTimingDevice device(
      [](int) {
        return CallResult{50, Fault{v1::VERDICT_RUNTIME_ERROR, "crashed"}};
      },
      Takes(50));
  CHECK(Timer(&device, Options()).Run().status() ==
        absl::InvalidArgumentError("the reference fails when it is timed: crashed"));
}

// Legal calls, each just under its own limit: the lane is held for its limit and one call more.
TEST_CASE("a sleeper holds the lane for its limit and one call at most") {
  TimerOptions options = Options();
  options.lane_seconds_max = 10;
  FakeTimingDevice device(Takes(100), Takes(1.9e6));
  Timer timer(&device, options);
  REQUIRE(timer.Run().ok());
  CHECK(device.lane_seconds > 10);
  CHECK(device.lane_seconds < 10 + 2);
}

TEST_CASE("a candidate that sleeps while it starts, or in its first call, is a timeout") {
  TimerOptions options = Options();
  options.lane_seconds_max = 10;
  FakeTimingDevice starts(Takes(100), Takes(100));
  starts.start_seconds = 11;
  const auto fault = Timer(&starts, options).Run();
  REQUIRE(fault->has_value());
  CHECK((*fault)->verdict == v1::VERDICT_TIMEOUT);
  CHECK(starts.num_started == 1);
  FakeTimingDevice calls(Takes(100), Takes(11e6));
  const auto first_call = Timer(&calls, options).Run();
  REQUIRE(first_call->has_value());
  CHECK((*first_call)->verdict == v1::VERDICT_TIMEOUT);
}

TEST_CASE("an instance beside a slow reference is timed beside the others, and then charged") {
  FakeTimingDevice once(Takes(210), Takes(60));
  once.slowness = [](int num_started) { return num_started == 2 ? 4.0 : 1.0; };
  Timer again(&once, Options());
  REQUIRE(again.Run().ok());
  CHECK(once.num_started == 6);
  CHECK(again.Timing().speedup() == Approx(4));
  CHECK(again.Timing().quality() == "; timed again where the reference was slow: 1");
  FakeTimingDevice always(Takes(210), Takes(60));
  always.slowness = [](int) { return 4.0; };
  Timer charged(&always, Options());
  REQUIRE(charged.Run().ok());
  CHECK(always.num_started == 7);
  CHECK(charged.Timing().speedup() == Approx(2));
}

TEST_CASE("an instance beside a slow reference is charged and counts where the time is up before another") {
  FakeTimingDevice device(Takes(210), Takes(60));
  device.slowness = [](int) { return 4.0; };
  device.start_seconds = 6;
  Timer timer(&device, Options());
  REQUIRE_FALSE(timer.Run()->has_value());
  CHECK(device.num_started == 2);
  CHECK(timer.Timing().speedup() == Approx(2));
  CHECK(timer.Timing().quality().find("timed again") == std::string::npos);
}

TEST_CASE("what is left of a call without its path is no less than empty calls scatter") {
  FakeTimingDevice device(Takes(210), Takes(10.5));
  device.overhead.candidate.scatter_us = 2;
  Timer timer(&device, Options());
  REQUIRE_FALSE(timer.Run()->has_value());
  CHECK(timer.Timing().speedup() == Approx(100));
}

TEST_CASE("work that is done in repeated calls is on the clock") {
  TimerOptions options = Options();
  options.repeats = true;
  // After the warm call and three to settle, every other call is a repeated one.
  const auto every_other = [](int call) {
    return CallResult{call >= 4 && call % 2 == 0 ? 110.0 : 60.0, std::nullopt};
  };
  FakeTimingDevice device(Takes(210), every_other);
  Timer timer(&device, options);
  REQUIRE_FALSE(timer.Run()->has_value());
  CHECK(timer.Timing().speedup() == Approx(2));
  FakeTimingDevice honest(Takes(210), Takes(60));
  Timer beside(&honest, options);
  REQUIRE_FALSE(beside.Run()->has_value());
  CHECK(beside.Timing().speedup() == Approx(4));
}

TEST_CASE("work that is left behind the answer is on the clock, beyond what follows that of an empty call") {
  const auto speedup = [](double after_us) {
    FakeTimingDevice device(Takes(210), [=](int) { return CallResult{60, std::nullopt, after_us}; });
    device.overhead.candidate.after_us = 200;
    Timer timer(&device, Options());
    REQUIRE_FALSE(timer.Run()->has_value());
    return timer.Timing().speedup();
  };
  CHECK(speedup(200) == Approx(4));
  CHECK(speedup(208) == Approx(4));  // what a GPU takes longer to change hands
  CHECK(speedup(258) == Approx(2));
  CHECK(speedup(0) == Approx(4));
}

TEST_CASE("a call that is too short to write its outputs is a hack") {
  TimerOptions options = Options();
  options.least_us = 30;
  FakeTimingDevice device(Takes(100), [](int call) {
    return CallResult{call == 3 ? 20.0 : 50.0, std::nullopt};
  });
  const auto fault = Timer(&device, options).Run();
  REQUIRE(fault->has_value());
  CHECK((*fault)->verdict == v1::VERDICT_HACK);
  CHECK((*fault)->hack_family == kImpossibleTimeFamily);
}

TEST_CASE("long calls get one call of the candidate a round, and one round an instance") {
  FakeTimingDevice device(Takes(50'000), Takes(40'000));
  Timer timer(&device, Options());
  REQUIRE_FALSE(timer.Run()->has_value());
  CHECK(timer.Timing().speedup() == Approx(49'990.0 / 39'990.0));
  CHECK(timer.Timing().candidate().num_calls() >= 5);
}

}  // namespace
}  // namespace warpsmith
