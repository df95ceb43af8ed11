#include "reward_service/referee/process/start_laps.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("laps are told one behind the other, and what they are together") {
  StartLaps laps;
  CHECK(laps.Report() == "0.0 s");
  laps.Add("GPU");
  laps.Add("Torch");
  CHECK(laps.Report() == "0.0 s: GPU 0.0, Torch 0.0");
}

}  // namespace
}  // namespace warpsmith
