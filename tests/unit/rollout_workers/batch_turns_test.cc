// Turns of a batch on its device.
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/device_turns.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/rollout_workers/device_batch_rig.h"

namespace warpsmith {

TEST_CASE(
    "steps are taken in turns on the device, which goes to another process that waits, and samples are as "
    "ever") {
  const TemporaryDirectory folder;
  const auto lease = [&] { return *DeviceLease::Open("GPU-1", folder.path()); };
  std::vector<DeviceLease> leases;
  leases.push_back(lease());
  Rig rig(Options(), 61, DeviceTurns(std::move(leases)));
  DeviceLease of_referee = lease();
  CHECK(rig.batch->HoldDevice());
  CHECK(absl::IsDeadlineExceeded(of_referee.Take(absl::Now()).status()));
  rig.batch->Rest();
  const GenerationJob job = Job(1, {3, 9}, 2, 20);
  rig.batch->Add(job);
  {
    const auto held = of_referee.Take(absl::Now());
    REQUIRE(held.ok());
    const Batch::Outcome outcome = rig.batch->Step();
    CHECK(outcome.num_steps == 0);
    CHECK(outcome.waited > absl::ZeroDuration());
    CHECK(rig.state->num_launched == 0);
  }
  rig.Step();
  CHECK(absl::IsDeadlineExceeded(of_referee.Take(absl::Now()).status()));
  absl::Status taken;
  std::thread referee([&] { taken = of_referee.Take(absl::Now() + absl::Seconds(20)).status(); });
  const DeviceLease watching = lease();
  while (!watching.IsWanted()) absl::SleepFor(absl::Milliseconds(1));
  rig.Step();
  referee.join();  // the step gave the device up
  CHECK(taken.ok());
  rig.RunToEnd();
  rig.batch->Rest();
  CHECK(of_referee.Take(absl::Now()).ok());
  REQUIRE(rig.finished.size() == 4);
  for (const auto& [place, sample] : rig.finished) CHECK(IsAsAlone(sample, job, 1));
}

}  // namespace warpsmith
