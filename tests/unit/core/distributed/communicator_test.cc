// The communicator against backends of the test's own: deadlines, aborts, and who outlives whom.
#include "core/distributed/communicator.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/support/catch.h"
#include "tests/unit/core/distributed/ranks.h"

namespace warpsmith {
namespace {

constexpr CollectiveLabel kLabel{"gradient", "update"};

// Every call waits until it is interrupted. Its plain members are touched by both threads: ThreadSanitizer and
// AddressSanitizer see an interrupt that outlives the call or the backend.
class StuckBackend : public CollectiveBackend {
 public:
  explicit StuckBackend(int* interrupts) : interrupts_(interrupts) {}
  ~StuckBackend() override { words_.clear(); }

  absl::Status AllReduceSum(void*, int64_t, ElementType, int64_t sequence) override {
    return Barrier(sequence);
  }
  absl::Status Broadcast(void*, int64_t, int, int64_t sequence) override { return Barrier(sequence); }
  absl::Status AllGather(const void*, void*, int64_t, int64_t sequence) override { return Barrier(sequence); }
  absl::Status Barrier(int64_t) override {
    if (!interrupted_.WaitForNotificationWithTimeout(absl::Seconds(30))) return absl::OkStatus();
    return absl::AbortedError("interrupted");
  }

  // The call returns before this does, as a kernel ends before ncclCommAbort has cleaned up.
  void Interrupt() override {
    ++*interrupts_;
    interrupted_.Notify();
    std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) words_ += "cleaning up";
  }

 private:
  int* const interrupts_;
  absl::Notification interrupted_;
  std::string words_;
};

// Every call is done at once.
class InstantBackend : public CollectiveBackend {
 public:
  absl::Status AllReduceSum(void*, int64_t, ElementType, int64_t) override { return absl::OkStatus(); }
  absl::Status Broadcast(void*, int64_t, int, int64_t) override { return absl::OkStatus(); }
  absl::Status AllGather(const void*, void*, int64_t, int64_t) override { return absl::OkStatus(); }
  absl::Status Barrier(int64_t) override { return absl::OkStatus(); }
  void Interrupt() override { words_ += "interrupted"; }

 private:
  std::string words_;
};

std::unique_ptr<ControlPlane> Alone() {
  auto control = ControlPlane::Create({});
  REQUIRE(control.ok());
  return *std::move(control);
}

}  // namespace

TEST_CASE("a collective that outlives its deadline is interrupted once and names itself") {
  int interrupts = 0;
  const auto control = Alone();
  Communicator communicator(control.get(), {.deadline = absl::Milliseconds(20)},
                            std::make_unique<StuckBackend>(&interrupts));
  const absl::Status status = communicator.Barrier(kLabel);
  INFO(status.ToString());
  CHECK(absl::IsDeadlineExceeded(status));
  CHECK(Contains(
      status, "rank 0 of 1: barrier \"gradient\" (#0, phase update, 0 bytes) passed its deadline of 20ms"));
  CHECK(communicator.Barrier({"other", "update"}) == status);
  CHECK(interrupts == 1);
}

TEST_CASE("each collective has the whole deadline, and the time between them does not count") {
  const auto control = Alone();
  Communicator communicator(control.get(), {.deadline = absl::Milliseconds(200)},
                            std::make_unique<InstantBackend>());
  for (int i = 0; i < 4; ++i) {
    CHECK(communicator.Barrier(kLabel).ok());
    absl::SleepFor(absl::Milliseconds(100));
  }
}

TEST_CASE("an abort from outside ends a running collective with its reason") {
  int interrupts = 0;
  const auto control = Alone();
  Communicator communicator(control.get(), {.deadline = absl::Hours(1)},
                            std::make_unique<StuckBackend>(&interrupts));
  std::thread aborting([&] { communicator.Abort(absl::CancelledError("the user pressed ctrl-c")); });
  CHECK(absl::IsCancelled(communicator.Barrier(kLabel)));
  aborting.join();
  CHECK(interrupts == 1);
}

TEST_CASE("a communicator may be destroyed as soon as its last call has returned") {
  int interrupts = 0;
  constexpr int kRounds = 200;
  const auto control = Alone();
  for (int round = 0; round < kRounds; ++round) {
    Communicator communicator(control.get(), {.deadline = absl::Milliseconds(round % 3)},
                              std::make_unique<StuckBackend>(&interrupts));
    CHECK(absl::IsDeadlineExceeded(communicator.Barrier(kLabel)));
  }
  CHECK(interrupts == kRounds);
}

TEST_CASE("a group that breaks while communicators come and go finds none that is half destroyed") {
  const auto statuses = RunControlRanks(2, {}, [](ControlPlane& control) -> absl::Status {
    RETURN_IF_ERROR(control.Barrier("first"));
    if (control.rank() == 1) {
      absl::SleepFor(absl::Milliseconds(20));
      return absl::CancelledError("asked to stop");
    }
    while (control.status().ok()) {
      Communicator communicator(&control, {}, std::make_unique<InstantBackend>());
      static_cast<void>(communicator.Barrier(kLabel));
    }
    int interrupts = 0;
    Communicator late(&control, {.deadline = absl::Hours(1)}, std::make_unique<StuckBackend>(&interrupts));
    return late.Barrier(kLabel);
  });
  INFO(statuses[0].ToString());
  CHECK(absl::IsCancelled(statuses[0]));
  CHECK(Contains(statuses[0], "rank 1 of 2 has stopped: asked to stop"));
}

}  // namespace warpsmith
