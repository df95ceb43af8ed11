#include "reward_service/referee/task/task_turns.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Work of a task that takes one turn, and fails as a test likes.
struct Bench {
  explicit Bench(DeviceTurn* device, bool is_always_alone = false) : turns(device, is_always_alone) {}

  absl::Status Work(const absl::Status& beside_others, const absl::Status& alone) {
    const auto work = [&]() -> absl::Status {
      const auto turn = turns.Take();
      REQUIRE(turn.ok());
      return (*turn)->is_shared() ? beside_others : alone;
    };
    return turns.SeeAloneIfItFails(work, [&] {
      ++num_begun;
      turns.Begin();
    });
  }

  TaskTurns turns;
  int num_begun = 0;
};

const absl::Status kFails = absl::InvalidArgumentError("illegal memory access");

TEST_CASE("what succeeds beside others is not done again") {
  DeviceTurn device;
  Bench bench(&device);
  CHECK(bench.Work(absl::OkStatus(), kFails).ok());
  CHECK(bench.turns.has_shared());
  CHECK(bench.num_begun == 0);
}

TEST_CASE("what fails beside others is done again alone, whatever it fails of, and that counts") {
  for (const absl::Status& failure :
       {kFails, absl::InternalError("no context"), absl::ResourceExhaustedError("no memory"),
        absl::UnavailableError("process 7 has ended")}) {
    DeviceTurn device;
    Bench innocent(&device), guilty(&device);
    CHECK(innocent.Work(failure, absl::OkStatus()).ok());
    CHECK_FALSE(innocent.turns.IsAlone());
    CHECK(innocent.num_begun == 2);  // before it is alone, and before it shares the device again
    CHECK(guilty.Work(failure, failure) == failure);
    CHECK(guilty.turns.IsAlone());
    CHECK(guilty.Work(absl::OkStatus(), failure) == failure);
    CHECK(guilty.Work(failure, absl::OkStatus()).ok());
    CHECK_FALSE(guilty.turns.IsAlone());
  }
}

TEST_CASE("what is certain is told at once, though others had the device, too") {
  DeviceTurn device;
  TaskTurns turns(&device, /*is_always_alone=*/false);
  const auto work = [&] {
    const auto turn = turns.Take();
    return kFails;
  };
  const auto begins_anew = [] { FAIL("nothing is done again"); };
  CHECK(turns.SeeAloneIfItFails(work, begins_anew, [] { return true; }) == kFails);
  CHECK_FALSE(turns.IsAlone());
}

TEST_CASE("a task that is suspected while it works alone is not cleared of that") {
  DeviceTurn device;
  TaskTurns turns(&device, /*is_always_alone=*/false);
  turns.Suspect();
  const auto work = [&] {
    turns.Suspect();
    return absl::OkStatus();
  };
  CHECK(turns.SeeAloneIfItFails(work, [] {}).ok());
  CHECK(turns.IsAlone());
}

TEST_CASE("a task is cleared some times, and then alone for good") {
  DeviceTurn device;
  Bench bench(&device);
  int num_cleared = 0;
  for (int i = 0; i < 20; ++i) {
    CHECK(bench.Work(kFails, absl::OkStatus()).ok());
    num_cleared += bench.turns.IsAlone() ? 0 : 1;
  }
  CHECK(num_cleared == 8);
  CHECK(bench.num_begun == 2 * 8 + 1);
}

TEST_CASE("a task that stays alone is not cleared, and has one oracle") {
  DeviceTurn device;
  Bench bench(&device);
  bench.turns.StayAlone();
  CHECK(bench.Work(kFails, absl::OkStatus()).ok());
  CHECK(bench.turns.IsAlone());
  CHECK(bench.num_begun == 0);
}

TEST_CASE(
    "without a device that is one for all, and where another task sees to it, failures are what they are") {
  DeviceTurn device;
  for (Bench* bench : {new Bench(nullptr), new Bench(&device, /*is_always_alone=*/true)}) {
    const std::unique_ptr<Bench> owned(bench);
    CHECK(bench->turns.IsAlone());
    CHECK(bench->Work(absl::OkStatus(), kFails) == kFails);
    CHECK(bench->num_begun == 0);
    CHECK_FALSE(bench->turns.has_shared());
  }
}

}  // namespace
}  // namespace warpsmith
