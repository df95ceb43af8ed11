#include "reward_service/measure/core_pace.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE(
    "a core is slow beside the fastest judgements, by half at most, never faster than they, and not before "
    "one") {
  CorePace pace;
  CHECK(pace.Slowness(900) == 1);
  pace.Learn({400, 300, 2000});
  CHECK(pace.Slowness(600) == 1.5);
  CHECK(pace.Slowness(100) == 1);
  pace.Learn({500, 600, 700});  // a worse time
  CHECK(pace.Slowness(600) == 1.5);
  pace.Learn({300, 300, 100});
  CHECK(pace.Slowness(600) == 1.6);
  CHECK(pace.Slowness(6000) == 1.6);
}

TEST_CASE("one judgement that was fast by chance is no measure for a hundred others") {
  CorePace pace;
  pace.Learn({100, 100, 100});
  for (int judgement = 0; judgement < 20; ++judgement) pace.Learn({400, 400, 400});
  CHECK(pace.Slowness(400) == 1);
  for (int judgement = 0; judgement < 100; ++judgement) pace.Learn({800, 800, 800});  // another clock, say
  CHECK(pace.Slowness(800) == 1);
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
