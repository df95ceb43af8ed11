#include "reward_service/grading/environment.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Cores = std::vector<int>;

TEST_CASE("on four cores or fewer the lane is the last core") {
  CHECK(DivideCores({0, 1}, {})->lane == Cores{1});
  CHECK(DivideCores({0, 1}, {})->others == Cores{0});
  CHECK(DivideCores({0, 1, 2, 3}, {})->lane == Cores{3});
}

TEST_CASE("with many cores the lanes have the last half") {
  CHECK(DivideCores({0, 1, 2, 3, 4, 5, 6, 7}, {})->lane == Cores{4, 5, 6, 7});
  CHECK(DivideCores({0, 1, 2, 3, 4, 5, 6, 7}, {})->others == Cores{0, 1, 2, 3});
}

TEST_CASE("a single core is lane and all else") {
  CHECK(DivideCores({5}, {})->lane == Cores{5});
  CHECK(DivideCores({5}, {})->others == Cores{5});
}

TEST_CASE("wanted cores are taken, if this process may use them") {
  CHECK(DivideCores({0, 1, 2}, {2, 0})->lane == Cores{0, 2});
  CHECK(DivideCores({0, 1, 2}, {2, 0})->others == Cores{1});
  CHECK(absl::IsInvalidArgument(DivideCores({0, 1}, {7}).status()));
  CHECK(absl::IsInvalidArgument(DivideCores({0, 1}, {1, 1}).status()));
}

TEST_CASE("the stamp names machine, lane and versions") {
  const v1::Environment environment = MakeEnvironment("1", "g++ 12", "2.11.0", "AVX2");
  CHECK(environment.lane_cores() == "1");
  CHECK(environment.compiler() == "g++ 12");
  CHECK(environment.torch_version() == "2.11.0");
  CHECK(environment.torch_cpu_capability() == "AVX2");
  CHECK(environment.cpu_model() != "");
  CHECK(environment.service_version() != "");
}

}  // namespace
}  // namespace warpsmith
