#include "reward_service/referee/round_clocks.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using cuda::ClockReading;

bool Changed(const ClockReading& before, const ClockReading& after) { return ClocksChanged({before, after}); }

std::vector<std::string> ReasonsOf(uint64_t reasons) {
  v1::Timing timing;
  DescribeClocks({{ClockReading{1980, 2619, reasons}, std::nullopt}}, 0, absl::OkStatus(), &timing);
  return {timing.clocks().throttle_reasons().begin(), timing.clocks().throttle_reasons().end()};
}

TEST_CASE("steps of a clock that no ratio is told from 1 by are no change, in either direction") {
  CHECK_FALSE(Changed({1980, 2619}, {1980, 2619}));
  CHECK_FALSE(Changed({1980, 2619}, {1980 - 15, 2619}));
  CHECK_FALSE(Changed({1980, 2619}, {1980 - 3 * 15, 2619}));
  CHECK(Changed({1980, 2619}, {1980 - 4 * 15, 2619}));
  CHECK(Changed({1980 - 5 * 15, 2619}, {1980, 2619}));
  CHECK(Changed({1980, 2619}, {1980, 1593}));
}

TEST_CASE("a slowdown that begins or ends is a change, one that stays is none") {
  const ClockReading full{1980, 2619, 0}, capped{1980, 2619, cuda::kReasonPowerCap};
  CHECK(Changed(full, capped));
  CHECK(Changed(capped, full));
  CHECK_FALSE(Changed(capped, capped));
  CHECK(Changed(capped, {1980, 2619, cuda::kReasonPowerCap | cuda::kReasonThermalSlowdown}));
  CHECK(Changed(full, {1980, 2619, 0x4000}));
}

TEST_CASE("an idle GPU and clocks that somebody has set slow nobody down") {
  CHECK_FALSE(Changed({1980, 2619, cuda::kReasonIdle}, {1980, 2619, 0}));
  CHECK_FALSE(Changed({1980, 2619, 0}, {1980, 2619, cuda::kReasonApplicationsClocks}));
}

TEST_CASE("of clocks that are not known at both ends nobody says that they changed; none are no number") {
  CHECK_FALSE(ClocksChanged({}));
  CHECK_FALSE(ClocksChanged({ClockReading{1980, 2619}, std::nullopt}));
  CHECK_FALSE(ClocksChanged({std::nullopt, ClockReading{990, 2619, cuda::kReasonPowerCap}}));
  CHECK_FALSE(Changed({0, 0}, {0, 0}));
  CHECK(Changed({0, 2619}, {1980, 2619}));
}

TEST_CASE("clocks are told from the least to the greatest, of the rounds that count") {
  v1::Timing timing;
  DescribeClocks({{ClockReading{1965, 2619, 0}, ClockReading{1980, 2619, 0}},
                  {std::nullopt, ClockReading{1950, 2604, cuda::kReasonPowerCap}}},
                 2, absl::OkStatus(), &timing);
  CHECK(timing.clocks().sm_mhz_min() == 1950);
  CHECK(timing.clocks().sm_mhz_max() == 1980);
  CHECK(timing.clocks().memory_mhz_min() == 2604);
  CHECK(timing.clocks().memory_mhz_max() == 2619);
  CHECK(timing.clocks().num_repeated_rounds() == 2);
  REQUIRE(timing.clocks().throttle_reasons_size() == 1);
  CHECK(timing.clocks().throttle_reasons(0) == "power cap");
  CHECK(timing.quality().empty());
}

TEST_CASE("reasons have names; idleness is none, and what has no name is told by its bits") {
  using Names = std::vector<std::string>;
  CHECK(ReasonsOf(cuda::kReasonIdle).empty());
  CHECK(ReasonsOf(cuda::kReasonApplicationsClocks) == Names{"applications clocks"});
  CHECK(ReasonsOf(cuda::kReasonHardwareSlowdown | cuda::kReasonHardwareThermalSlowdown) ==
        Names{"hardware slowdown", "hardware thermal slowdown"});
  CHECK(ReasonsOf(0x4000 | cuda::kReasonThermalSlowdown) == Names{"thermal slowdown", "reason 0x4000"});
}

TEST_CASE("rounds that count though the clocks changed are told, and why clocks are missing") {
  const RoundClocks changed{ClockReading{1980, 2619, 0}, ClockReading{1500, 2619, 0}};
  v1::Timing timing;
  DescribeClocks({changed, {}, changed}, 3, absl::OkStatus(), &timing);
  CHECK(timing.quality() == "; clocks changed during rounds that count: 2");
  v1::Timing unknown;
  DescribeClocks({{}, {}}, 0, absl::NotFoundError("there is no NVML"), &unknown);
  CHECK_FALSE(unknown.has_clocks());
  CHECK(unknown.quality() == "; clocks are not known: there is no NVML");
  v1::Timing cores;
  DescribeClocks({{}, {}}, 0, absl::OkStatus(), &cores);
  CHECK_FALSE(cores.has_clocks());
  CHECK(cores.quality().empty());
}

}  // namespace
}  // namespace warpsmith
