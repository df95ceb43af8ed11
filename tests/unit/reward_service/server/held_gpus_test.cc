#include "reward_service/server/held_gpus.h"

#include "absl/time/clock.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

TEST_CASE("GPUs are held, and those that others use are waited for all at once") {
  const TemporaryDirectory directory;
  DeviceLease first = *DeviceLease::Open("GPU-a", directory.path());
  DeviceLease second = *DeviceLease::Open("GPU-b", directory.path());
  {
    const HeldGpus free = HoldGpus({"GPU-a", "", "GPU-b"}, {.directory = directory.path()});
    CHECK((free.held[0] && !free.held[1] && free.held[2]));
    CHECK_FALSE(free.leases[1]);
    CHECK_FALSE(first.Take(absl::Now()).ok());
  }
  const auto others_first = first.Take(absl::Now());
  const auto others_second = second.Take(absl::Now());
  REQUIRE((others_first.ok() && others_second.ok()));
  const absl::Time begin = absl::Now();
  const HeldGpus taken =
      HoldGpus({"GPU-a", "GPU-b", "GPU-c"}, {.directory = directory.path(), .wait_max = absl::Seconds(1)});
  CHECK(absl::Now() - begin < absl::Seconds(1.8));
  CHECK((!taken.held[0] && !taken.held[1] && taken.held[2]));
  CHECK((taken.leases[0] && taken.leases[1]));  // for later
}

TEST_CASE("where there is no place for locks no GPU is waited for") {
  const HeldGpus gpus = HoldGpus({"GPU-a", "GPU-b"}, {.directory = "/there/is/no/such/folder"});
  CHECK_FALSE(gpus.leases[0]);
  CHECK_FALSE(gpus.held[1]);
}

}  // namespace
}  // namespace warpsmith
