#include "reward_service/measure/core_pace.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE(
    "a core is slow beside the least median of a judgement, never faster than that, and not before one") {
  CorePace pace;
  CHECK(pace.Slowness(900) == 1);
  pace.Learn({400, 300, 2000});
  CHECK(pace.Slowness(600) == 1.5);
  CHECK(pace.Slowness(100) == 1);
  pace.Learn({500, 600, 700});  // a worse time
  CHECK(pace.Slowness(600) == 1.5);
  pace.Learn({300, 300, 100});
  CHECK(pace.Slowness(600) == 2);
}

TEST_CASE("few measurements, or such as cannot be, are nothing to compare with") {
  CorePace pace;
  pace.Learn({});
  pace.Learn({5, 5});
  pace.Learn({-3, -2, -1});
  CHECK(pace.Slowness(1e6) == 1);
  CHECK(pace.Slowness(-5) == 1);
}

}  // namespace
}  // namespace warpsmith
