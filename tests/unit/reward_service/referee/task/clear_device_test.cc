#include "reward_service/referee/task/clear_device.h"

#include "tests/support/catch.h"
#include "tests/support/fake_judging_device.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

TEST_CASE(
    "a device is cleared of those who wait first, then of all references, and of no more than is needed") {
  const auto zygote = StartPuppets();
  struct {
    int num_busy;        // looks that find it at work
    bool waiting;        // whether anybody waits there
    int num_references;  // that end
    absl::StatusCode code;
  } const cases[] = {{0, true, 0, absl::StatusCode::kOk},
                     {1, true, 0, absl::StatusCode::kOk},
                     {1, false, 1, absl::StatusCode::kOk},
                     {2, true, 1, absl::StatusCode::kOk},
                     {9, true, 1, absl::StatusCode::kUnavailable}};
  for (const auto& the_case : cases) {
    FakeMachine machine;
    TaskPool pool(PuppetTaskLimits(), zygote.get(), &PuppetLane(), PlacesOf(&machine), 1);
    REQUIRE(pool.GetExamined(PuppetTaskSource(), absl::Now() + absl::Seconds(60)).ok());
    int num_looks = 0;
    const auto idle = [&]() -> absl::Status {
      return num_looks++ < the_case.num_busy ? absl::DeadlineExceededError("busy") : absl::OkStatus();
    };
    CHECK(ClearDevice(
              idle, [&] { return the_case.waiting; }, &pool)
              .code() == the_case.code);
    CHECK(machine.num_references_ended == the_case.num_references);
  }
}

TEST_CASE("a device that is broken is not cleared") {
  const auto zygote = StartPuppets();
  FakeMachine machine;
  TaskPool pool(PuppetTaskLimits(), zygote.get(), &PuppetLane(), PlacesOf(&machine), 1);
  const auto broken = [] { return absl::InternalError("it does not add up"); };
  const auto never = [] {
    FAIL("nobody is at fault");
    return false;
  };
  CHECK(absl::IsUnavailable(ClearDevice(broken, never, &pool)));
}

}  // namespace
}  // namespace warpsmith
