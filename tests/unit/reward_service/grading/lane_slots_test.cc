#include "reward_service/grading/lane_slots.h"

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/support/catch.h"
#include "tests/support/fake_referee.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

struct Bench {
  explicit Bench(int num_at_once, std::optional<DeviceLease> lease = std::nullopt)
      : lane({.device = v1::DEVICE_CUDA, .num_at_once = num_at_once}, std::make_unique<FakeReferee>(&script),
             std::move(lease)) {}

  FakeRefereeScript script;
  JudgeStage lane;
};

TEST_CASE("the work of a lane that judges one at a time is done by the calling thread") {
  Bench bench(1);
  LaneSlots slots(&bench.lane);
  std::thread::id thread;
  slots.Run("task", [&] {
    thread = std::this_thread::get_id();
    CHECK(slots.busy_tasks() == std::vector<std::string>{"task"});
  });
  CHECK(thread == std::this_thread::get_id());
  CHECK(slots.busy_tasks().empty());
}

TEST_CASE("slots are taken until none is free, and an end waits for all of them") {
  Bench bench(2);
  absl::Notification go;
  std::atomic<int> num_done = 0;
  std::thread releases;
  {
    LaneSlots slots(&bench.lane);
    for (const char* task : {"one", "two"}) {
      slots.AwaitFree();
      slots.Run(task, [&] {
        go.WaitForNotification();
        ++num_done;
      });
    }
    CHECK(slots.busy_tasks() == std::vector<std::string>{"one", "two"});
    releases = std::thread([&] { go.Notify(); });
    slots.AwaitFree();
    CHECK(num_done >= 1);
    slots.AwaitAllFree();
    CHECK(num_done == 2);
    slots.Run("three", [&] { ++num_done; });
  }
  CHECK(num_done == 3);
  releases.join();
}

TEST_CASE("one more free slot is waited for, and not for long") {
  Bench bench(2);
  std::array<absl::Notification, 2> go;
  LaneSlots slots(&bench.lane);
  for (absl::Notification& one : go) slots.Run("task", [&] { one.WaitForNotification(); });
  slots.AwaitOneMoreFree(absl::Milliseconds(1));
  CHECK(slots.busy_tasks().size() == 2);
  std::thread releases([&] {
    absl::SleepFor(absl::Milliseconds(50));
    go[0].Notify();
  });
  slots.AwaitOneMoreFree(absl::Seconds(20));
  CHECK(slots.busy_tasks().size() == 1);
  releases.join();
  go[1].Notify();
}

TEST_CASE("a device is one hold for work that overlaps, and held anew once all of that has ended") {
  const TemporaryDirectory directory;
  Bench bench(2, *DeviceLease::Open("0", directory.path()));
  LaneSlots slots(&bench.lane);
  DeviceLease other = *DeviceLease::Open("0", directory.path());
  {
    const auto first = slots.TakeDevice(), second = slots.TakeDevice();
    REQUIRE(first.ok());
    CHECK(*first == *second);
    CHECK(absl::IsDeadlineExceeded(other.Take(absl::Now()).status()));
  }
  CHECK(other.Take(absl::Now()).ok());
  const auto third = slots.TakeDevice();
  CHECK(third.ok());
}

}  // namespace
}  // namespace warpsmith
