// What a lane on the fake GPU tells of that GPU's clocks.
#include "tests/integration/fake_gpu_lane.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("clocks are told, and a round during which they changed is timed again") {
  const v1::Grade steady = GradeOf(kRight, /*verify_only=*/false);
  INFO(steady.ShortDebugString());
  CHECK(steady.timing().clocks().sm_mhz_min() == 990);
  CHECK(steady.timing().clocks().sm_mhz_max() == 990);
  CHECK(steady.timing().clocks().memory_mhz_min() == 2600);
  CHECK(steady.timing().clocks().throttle_reasons().empty());
  CHECK(steady.timing().clocks().num_repeated_rounds() == 0);
  TestDriver().Say("throttle 1 1\n");  // at the end of the first round
  const v1::Timing throttled = GradeOf(kRight, /*verify_only=*/false).timing();
  TestDriver().Say("");
  INFO(throttled.ShortDebugString());
  CHECK(throttled.clocks().num_repeated_rounds() == 1);
  CHECK(throttled.clocks().sm_mhz_min() == 990);
  CHECK(throttled.clocks().throttle_reasons().empty());
  CHECK_THAT(throttled.quality(), !Catch::Contains("clocks"));
}

TEST_CASE("a GPU that is slowed down all the time, or does not tell its clocks, is timed and says so") {
  TestDriver().Say("throttle 0 1000\n");
  const v1::Timing slow = GradeOf(kRight, /*verify_only=*/false).timing();
  CHECK(slow.clocks().sm_mhz_max() == 660);
  REQUIRE(slow.clocks().throttle_reasons_size() == 1);
  CHECK(slow.clocks().throttle_reasons(0) == "power cap");
  CHECK(slow.clocks().num_repeated_rounds() == 0);
  TestDriver().Say("fail nvmlDeviceGetClockInfo 3\n");
  const v1::Grade unknown = GradeOf(kRight, /*verify_only=*/false);
  TestDriver().Say("");
  CHECK(unknown.verdict() == v1::VERDICT_CORRECT);
  CHECK_FALSE(unknown.timing().has_clocks());
  CHECK_THAT(unknown.timing().quality(),
             Catch::Contains("; clocks are not known: nvmlDeviceGetClockInfo: Not Supported (3)"));
}

}  // namespace
}  // namespace warpsmith
