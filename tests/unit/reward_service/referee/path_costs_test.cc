#include "reward_service/referee/path_costs.h"

#include <vector>

#include "tests/support/catch.h"
#include "tests/support/fake_timing_device.h"

namespace warpsmith {
namespace {

TEST_CASE("of a path that is measured in a row the least is kept, of both clocks apart") {
  FakeTimingDevice device(Takes(0), Takes(0));
  PathCosts path(&device, {});
  for (const EmptyCall& empty : {EmptyCall{20, 3, 5}, EmptyCall{10, 1, 9}, EmptyCall{30, 2, 4}}) {
    device.overhead = {empty, empty};
    REQUIRE(path.MeasureCall().ok());
    REQUIRE(path.MeasureBatch(1).ok());
  }
  CHECK(device.num_hot == 3);
  CHECK(device.num_cold == 0);
  CHECK(path.OfReference({}).us == 10);
  CHECK(path.OfCandidate(1).us == 10);
  CHECK(path.OfCandidate(1).scatter_us == 1);
  CHECK(path.OfCandidate(1).after_us == 4);
}

TEST_CASE("of a path that is measured cold the median counts, and a row of calls is made once") {
  FakeTimingDevice device(Takes(0), Takes(0));
  device.overhead = {{100, 0}, {100, 0}};
  device.cold_us = [](int measurement) { return measurement == 2 ? 1000.0 : 60.0 + measurement; };
  PathCosts path(&device, {.cold = true});
  for (int round = 0; round < 3; ++round) {
    REQUIRE(path.MeasureCall().ok());
    if (round == 0) CHECK(path.OfCandidate(1).us == 100);  // nothing better is known yet
    REQUIRE(path.MeasureBatch(1).ok());
  }
  CHECK(device.num_hot == 1);
  CHECK(path.OfReference({}).us == 163);
  CHECK(path.OfCandidate(1).us == 163);
}

TEST_CASE("of a round its own path counts, and of calls in none the median of all rounds") {
  FakeTimingDevice device(Takes(0), Takes(0));
  device.overhead = {{100, 0}, {100, 0}};
  device.cold_us = [](int measurement) { return 10.0 * measurement; };
  PathCosts path(&device, {.cold = true});
  std::vector<RoundPath> rounds(3);
  for (RoundPath& round : rounds) REQUIRE(path.MeasureBatch(1, &round).ok());
  CHECK(path.OfReference({}, rounds.back()).us == 130);
  CHECK(path.OfCandidate(1, rounds.front()).us == 110);
  CHECK(path.OfCandidate(1).us == 120);
}

TEST_CASE("what the task's memory adds is the least that was seen before any process, on either side") {
  FakeTimingDevice device(Takes(0), Takes(0));
  device.overhead = {{100, 0}, {50, 0}};
  device.memory_us = [](int process) { return process == 0 ? 1000.0 : 7.0; };
  PathCosts path(&device, {.cold = true});
  for (device.num_started = 0; device.num_started < 3; ++device.num_started) {
    REQUIRE(path.MeasureCall().ok());
    RoundPath round;
    REQUIRE(path.MeasureBatch(1, &round).ok());
    CHECK(path.OfReference({}, round).us == (device.num_started == 0 ? 1100 : 107));
    CHECK(path.OfCandidate(1).us == (device.num_started == 0 ? 1050 : 57));
  }
  CHECK(device.num_hot == 1);
}

// Of a batch of four, between whose calls the runner does something for 7 us each.
TEST_CASE("what a runner does between calls hides behind the device's work, or is on both clocks") {
  FakeTimingDevice device(Takes(0), Takes(0));
  device.overhead = {{100, 0}, {100, 0}};
  device.further_call_us = 7;
  const auto path = [&](bool takes_between_off) {
    PathCosts costs(&device, {.cold = true, .takes_between_off = takes_between_off});
    for (const size_t num_calls : {size_t{1}, size_t{4}}) REQUIRE(costs.MeasureBatch(num_calls).ok());
    return costs;
  };
  const auto of_reference = [&](double waited_us, bool takes_between_off) {
    return path(takes_between_off).OfReference({.num_calls = 4, .waited_us = waited_us}).us;
  };
  CHECK(path(true).OfCandidate(4).us == 121);
  CHECK(of_reference(0, true) == 121);
  CHECK(of_reference(11, true) == 110);
  CHECK(of_reference(500, true) == 100);  // all of it hid
  CHECK(path(false).OfCandidate(4).us == 100);
  CHECK(of_reference(0, false) == 100);
  CHECK(of_reference(500, false) == 100);
}

TEST_CASE("a reference that says what its device takes for a call is believed") {
  FakeTimingDevice device(Takes(0), Takes(0));
  device.overhead = {{100, 0}, {100, 0}};
  device.further_call_us = 7;
  PathCosts path(&device, {.cold = true, .takes_between_off = true});
  for (const size_t num_calls : {size_t{1}, size_t{4}}) REQUIRE(path.MeasureBatch(num_calls).ok());
  const auto us = [&](double waited_us, double steady_us) {
    return path.UsOfReference({.us = 900, .num_calls = 4, .waited_us = waited_us, .steady_us = steady_us});
  };
  CHECK(us(500, 200) == 200);
  CHECK(us(0, 200) == 200 - 7);  // nothing hid what its runner does between calls
  CHECK(us(500, 0) == 200);      // it does not say
  CHECK(path.UsOfReference({.us = 900, .num_calls = 1, .steady_us = 200}) == 800);
}

TEST_CASE("work behind the answer is on the clock, but for what a GPU takes longer to change hands") {
  const EmptyCall empty{.us = 100, .after_us = 150};
  CHECK(WithWorkAfter({.us = 300, .after_us = 158}, empty) == 300);
  CHECK(WithWorkAfter({.us = 300, .after_us = 178}, empty) == 320);
  CHECK(WithWorkAfter({.us = 3000, .after_us = 180}, empty) == 3000);
  CHECK(WithWorkAfter({.us = 3000, .after_us = 200}, empty) == 3020);  // 30 us at most
  CHECK(WithWorkAfter({.us = 1000, .after_us = 180}, empty) == 1010);
  CHECK(WithWorkAfter({.us = 300, .after_us = 8}, {.us = 100}) == 308);  // nobody proves a CPU idle
}

TEST_CASE(
    "a program that answers sooner than an empty one gains what is forgiven behind its answer, and no path") {
  const EmptyCall path{.us = 160, .after_us = 146};
  const double work_us = 200;
  // The GPU has yet to change hands to the program, which is behind its word, too.
  const BatchTime honest{.us = 160 + work_us, .after_us = 146},
      soon{.us = 1, .after_us = 146 + 146 + work_us};
  CHECK(SingleWithoutPath(honest, path) == work_us);
  CHECK(SingleWithoutPath(soon, path) == 146 + work_us - 8);
}

}  // namespace
}  // namespace warpsmith
