#include "reward_service/grading/serving_lanes.h"

#include <thread>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("a lost lane rests until it is there again, and others serve meanwhile") {
  ServingLanes lanes(absl::Milliseconds(1));
  lanes.Add(v1::DEVICE_CUDA);
  CHECK_FALSE(lanes.OthersServe(v1::DEVICE_CUDA));
  lanes.Add(v1::DEVICE_CUDA);
  CHECK(lanes.OthersServe(v1::DEVICE_CUDA));
  int num_tries = 0;
  CHECK(lanes.Rest(v1::DEVICE_CUDA, [&] {
    CHECK(lanes.num_lost() == 1);
    CHECK_FALSE(lanes.OthersServe(v1::DEVICE_CUDA));
    return ++num_tries == 3;
  }));
  CHECK(num_tries == 3);
  CHECK(lanes.num_lost() == 0);
  CHECK(lanes.OthersServe(v1::DEVICE_CUDA));
}

TEST_CASE("the last lane of a device does not rest, however many another device has") {
  ServingLanes lanes(absl::Hours(1));
  for (const v1::Device device : {v1::DEVICE_CUDA, v1::DEVICE_CPU, v1::DEVICE_CPU}) lanes.Add(device);
  CHECK(lanes.Rest(v1::DEVICE_CUDA, [] { return false; }));
  CHECK(lanes.num_lost() == 0);
}

TEST_CASE("a lane that rests is woken when all end") {
  ServingLanes lanes(absl::Hours(1));
  lanes.Add(v1::DEVICE_CPU);
  lanes.Add(v1::DEVICE_CPU);
  bool serves = true;
  std::thread lane([&] { serves = lanes.Rest(v1::DEVICE_CPU, [] { return true; }); });
  lanes.Close();
  lane.join();
  CHECK_FALSE(serves);
  CHECK(lanes.num_lost() == 1);
}

}  // namespace
}  // namespace warpsmith
