#include "reward_service/grading/task_lanes.h"

#include <array>
#include <memory>

#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"
#include "tests/support/temporary_directory.h"

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
  TaskPlace PlaceFor(size_t lane, double seconds) {
    return task_lanes.PlaceOf("a task", lanes[lane].get(), absl::UnixEpoch() + absl::Seconds(seconds));
  }
  bool IsElsewhere(size_t lane, double seconds) { return PlaceFor(lane, seconds) == TaskPlace::kElsewhere; }
  void Use(size_t lane, double seconds) {
    task_lanes.Use("a task", lanes[lane].get(), absl::FromUnixSeconds(0) + absl::Seconds(seconds));
  }

  std::array<FakeRefereeScript, 3> scripts;
  std::array<std::unique_ptr<JudgeStage>, 3> lanes;
  TaskLanes task_lanes;
};

TEST_CASE("a task is elsewhere for the lanes of a device that have not used it, where another one has") {
  Bench bench;
  for (size_t lane = 0; lane < 3; ++lane) CHECK_FALSE(bench.IsElsewhere(lane, 0));
  bench.Use(1, 0);
  CHECK(bench.IsElsewhere(0, 1));
  CHECK_FALSE(bench.IsElsewhere(1, 1));
  CHECK_FALSE(bench.IsElsewhere(2, 1));
  CHECK(bench.task_lanes.PlaceOf("another", bench.lanes[0].get(), absl::FromUnixSeconds(1)) ==
        TaskPlace::kNowhere);
  bench.Use(0, 2);  // now both have it
  CHECK_FALSE(bench.IsElsewhere(0, 3));
  CHECK_FALSE(bench.IsElsewhere(1, 3));
}

TEST_CASE("a lane that has not used a task for long does not have it any more") {
  Bench bench;
  bench.Use(0, 0);
  bench.Use(1, 50);
  CHECK_FALSE(bench.IsElsewhere(0, 59));
  CHECK(bench.IsElsewhere(0, 61));
  CHECK_FALSE(bench.IsElsewhere(0, 111));
  const absl::Time later = absl::FromUnixSeconds(61);
  CHECK(bench.task_lanes.Of("a task", v1::DEVICE_CUDA, later) == bench.lanes[1].get());
  CHECK(bench.task_lanes.Of("a task", v1::DEVICE_CPU, later) == nullptr);
}

TEST_CASE("a task is where candidates of it are judged") {
  Bench bench;
  const auto at = [](double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); };
  bench.task_lanes.BeginJudgement("a task", bench.lanes[1].get(), at(0));
  CHECK(bench.PlaceFor(1, 59) == TaskPlace::kHere);
  CHECK(bench.PlaceFor(0, 59) == TaskPlace::kElsewhere);
  bench.Use(1, 50);
  CHECK(bench.PlaceFor(1, 109) == TaskPlace::kHere);
  CHECK(bench.PlaceFor(1, 111) == TaskPlace::kNowhere);
  bench.Use(1, 120);  // it may have made room
  CHECK(bench.PlaceFor(1, 121) == TaskPlace::kNowhere);
}

TEST_CASE("a task that a lane has only made ready is not judged there") {
  Bench bench;
  bench.Use(1, 0);
  CHECK(bench.PlaceFor(1, 1) == TaskPlace::kNowhere);
  CHECK(bench.PlaceFor(0, 1) == TaskPlace::kElsewhere);
}

TEST_CASE("an idle GPU leaves a candidate as long as lanes take to a first result, and a busy one longer") {
  Bench bench;
  const auto at = [](double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); };
  const auto left_max = [&](double seconds) {
    return bench.task_lanes.LeftMax(*bench.lanes[0], /*has_work_in_hand=*/false, at(seconds));
  };
  const auto judge = [&](const char* task, size_t lane, double begin, double end, bool is_complete = true) {
    bench.task_lanes.BeginJudgement(task, bench.lanes[lane].get(), at(begin));
    bench.task_lanes.EndJudgement(task, bench.lanes[lane].get(), is_complete, at(end));
  };
  const absl::Duration longest = bench.task_lanes.LeftMax(*bench.lanes[0], true, at(0));
  CHECK(bench.task_lanes.LeftMax(*bench.lanes[2], true, at(0)) == absl::ZeroDuration());  // cores
  bench.Use(0, 0);
  CHECK(left_max(0) == longest);  // no result is known
  judge("a task", 0, 0, 1, false);
  CHECK(left_max(1) == longest);
  judge("a task", 0, 2, 3);
  CHECK(left_max(3) == absl::Seconds(3));  // since it began
  judge("a task", 0, 3, 4);
  judge("a task", 1, 3, 4);
  judge("on cores", 2, 0, 4);
  CHECK(left_max(4) == absl::Seconds(2));
  CHECK(bench.task_lanes.LeftMax(*bench.lanes[0], true, at(4)) == longest);
  CHECK(bench.task_lanes.LeftMax(*bench.lanes[2], false, at(4)) == absl::ZeroDuration());
  judge("slow", 1, 4, 54);
  CHECK(left_max(54) == longest);
  CHECK(left_max(115) == longest);
  judge("longer than tasks are remembered", 1, 200, 261);
  CHECK(left_max(261) == longest);
}

TEST_CASE("a lane whose device others have does not have its tasks meanwhile") {
  const TemporaryDirectory directory;
  Bench bench;
  FakeRefereeScript script;
  JudgeStage lent({.device = v1::DEVICE_CUDA, .num_attempts_max = 1}, std::make_unique<FakeReferee>(&script),
                  *DeviceLease::Open("0", directory.path()));
  const absl::Time now = absl::UnixEpoch();
  bench.task_lanes.Use("a task", &lent, now);
  CHECK(bench.IsElsewhere(0, 0));
  {
    DeviceLease other = *DeviceLease::Open("0", directory.path());
    const auto held = *other.Take(absl::Now() + absl::Seconds(20));
    CHECK_FALSE(lent.TakeDevice().ok());
    CHECK(lent.is_lent());
    CHECK_FALSE(bench.IsElsewhere(0, 0));
    CHECK(bench.task_lanes.Of("a task", v1::DEVICE_CUDA, now) == nullptr);
  }
  CHECK(lent.TakeDevice().ok());
  CHECK(bench.IsElsewhere(0, 0));
}

}  // namespace
}  // namespace warpsmith
