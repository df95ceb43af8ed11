#include "rollout_workers/device/rank_threads.h"

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/support/catch.h"

namespace warpsmith::device {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

}  // namespace

TEST_CASE("work runs on all threads at once, each time by the thread of its rank") {
  RankThreads threads(3);
  RankMeeting meeting(3);
  std::array<std::atomic<int>, 3> runs = {};
  for (int call = 0; call < 200; ++call) {
    const RankOutcome outcome = threads.Run(
        [&](int rank) {
          meeting.Meet(kLong);  // comes back only where the others run beside it
          ++runs[rank];
          return absl::OkStatus();
        },
        kLong);
    REQUIRE(outcome.status.ok());
  }
  for (const auto& count : runs) CHECK(count == 200);
  CHECK_FALSE(threads.is_stuck());
}

TEST_CASE("the first that fails by time is told, and what the others wait in is ended once") {
  RankThreads threads(3);
  absl::Notification ended;
  int num_failures = 0;
  const RankOutcome outcome = threads.Run(
      [&](int rank) -> absl::Status {
        if (rank == 1) return absl::InternalError("broken");
        ended.WaitForNotification();
        return absl::AbortedError("ended");
      },
      kLong,
      [&] {
        ++num_failures;
        ended.Notify();
      });
  CHECK(outcome.rank == 1);
  CHECK(absl::IsInternal(outcome.status));
  CHECK(num_failures == 1);
  CHECK(threads.Run([](int) { return absl::OkStatus(); }, kLong).status.ok());
}

TEST_CASE("where nobody waits for others, the one that fails is told when all are back") {
  RankThreads threads(2);
  std::atomic<bool> is_back = false;
  const RankOutcome outcome = threads.Run(
      [&](int rank) -> absl::Status {
        if (rank == 1) return absl::NotFoundError("no such file");
        absl::SleepFor(absl::Milliseconds(50));
        is_back = true;
        return absl::OkStatus();
      },
      kLong);
  CHECK(is_back);
  CHECK(outcome.rank == 1);
  CHECK(absl::IsNotFound(outcome.status));
}

TEST_CASE("an exception is an error of its rank") {
  RankThreads threads(2);
  const RankOutcome outcome = threads.Run(
      [](int rank) -> absl::Status {
        if (rank == 0) throw std::runtime_error("no such tensor");
        return absl::OkStatus();
      },
      kLong);
  CHECK(outcome.rank == 0);
  CHECK(outcome.status.message() == "no such tensor");
}

TEST_CASE(
    "a thread that is late is named, and one that comes back when others are ended is none that is stuck") {
  RankThreads threads(2);
  const auto go = std::make_shared<absl::Notification>();
  const RankOutcome outcome = threads.Run(
      [go](int rank) {
        if (rank == 1) go->WaitForNotification();
        return absl::OkStatus();
      },
      absl::Milliseconds(50), [go] { go->Notify(); });
  CHECK(absl::IsDeadlineExceeded(outcome.status));
  CHECK_FALSE(threads.is_stuck());
}

TEST_CASE("a meeting without all ends at its timeout, and the next one needs all again") {
  RankMeeting meeting(2);
  meeting.Meet(absl::Milliseconds(10));
  RankThreads threads(2);
  std::atomic<int> num_arrived = 0, num_seen = 0;
  REQUIRE(threads
              .Run(
                  [&](int) {
                    ++num_arrived;
                    meeting.Meet(kLong);
                    num_seen += num_arrived;
                    return absl::OkStatus();
                  },
                  kLong)
              .status.ok());
  CHECK(num_seen == 4);
}

}  // namespace warpsmith::device
