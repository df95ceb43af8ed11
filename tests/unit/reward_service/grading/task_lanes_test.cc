#include "reward_service/grading/task_lanes.h"

#include <array>
#include <memory>

#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"

namespace warpsmith {
namespace {

// Two lanes of a GPU, and one of cores.
struct Bench {
  Bench() {
    for (size_t i = 0; i < lanes.size(); ++i) {
      const v1::Device device = i < 2 ? v1::DEVICE_CUDA : v1::DEVICE_CPU;
      lanes[i] = std::make_unique<JudgeStage>(JudgeStageOptions{.device = device, .num_attempts_max = 1},
                                              std::make_unique<FakeReferee>(&scripts[i]));
    }
  }
  bool IsElsewhere(size_t lane, double seconds) {
    return task_lanes.IsElsewhere("a task", lanes[lane].get(),
                                  absl::FromUnixSeconds(0) + absl::Seconds(seconds));
  }
  void Use(size_t lane, double seconds) {
    task_lanes.Use("a task", lanes[lane].get(), absl::FromUnixSeconds(0) + absl::Seconds(seconds));
  }

  std::array<FakeRefereeScript, 3> scripts;
  std::array<std::unique_ptr<JudgeStage>, 3> lanes;
  TaskLanes task_lanes;
};

TEST_CASE("a task is elsewhere for all lanes of its device but the one that has used it") {
  Bench bench;
  for (size_t lane = 0; lane < 3; ++lane) CHECK_FALSE(bench.IsElsewhere(lane, 0));
  bench.Use(1, 0);
  CHECK(bench.IsElsewhere(0, 1));
  CHECK_FALSE(bench.IsElsewhere(1, 1));
  CHECK_FALSE(bench.IsElsewhere(2, 1));
  CHECK_FALSE(bench.task_lanes.IsElsewhere("another", bench.lanes[0].get(), absl::FromUnixSeconds(1)));
}

TEST_CASE("a lane that takes a task of another's does not have it, until that one has not used it for long") {
  Bench bench;
  bench.Use(1, 0);
  bench.Use(0, 8);
  CHECK(bench.IsElsewhere(0, 9));
  CHECK_FALSE(bench.IsElsewhere(0, 11));
  bench.Use(1, 12);
  bench.Use(1, 20);
  CHECK(bench.IsElsewhere(0, 29));
  bench.Use(0, 31);
  CHECK(bench.IsElsewhere(1, 32));
}

}  // namespace
}  // namespace warpsmith
