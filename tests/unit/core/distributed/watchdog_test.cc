#include "core/distributed/watchdog.h"

#include <atomic>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("a deadline that passes fires once") {
  absl::Notification fired;
  Watchdog watchdog([&] { fired.Notify(); });  // a second Notify would abort
  watchdog.Arm(absl::Now() + absl::Milliseconds(5));
  CHECK(fired.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST_CASE("a disarmed deadline never fires") {
  std::atomic<int> count = 0;
  {
    Watchdog watchdog([&] { ++count; });
    for (int i = 0; i < 100; ++i) {
      watchdog.Arm(absl::Now() + absl::Hours(1));
      watchdog.Disarm();
    }
  }
  CHECK(count == 0);
}

TEST_CASE("an armed watchdog is destroyed without waiting for its deadline") {
  std::atomic<int> count = 0;
  {
    Watchdog watchdog([&] { ++count; });
    watchdog.Arm(absl::Now() + absl::Hours(1));
  }
  CHECK(count == 0);
}

TEST_CASE("a deadline that was moved on fires at the later time alone") {
  std::atomic<int> count = 0;
  absl::Notification fired;
  Watchdog watchdog([&] {
    ++count;
    fired.Notify();
  });
  const absl::Time later = absl::Now() + absl::Milliseconds(300);
  watchdog.Arm(absl::Now() + absl::Milliseconds(100));
  watchdog.Arm(later);
  REQUIRE(fired.WaitForNotificationWithTimeout(absl::Seconds(30)));
  CHECK(absl::Now() >= later);
  CHECK(count == 1);
}

TEST_CASE("a watchdog that has fired can be armed again") {
  std::atomic<int> count = 0;
  absl::Notification first, second;
  Watchdog watchdog([&] { (++count == 1 ? first : second).Notify(); });
  watchdog.Arm(absl::Now());
  REQUIRE(first.WaitForNotificationWithTimeout(absl::Seconds(30)));
  watchdog.Arm(absl::Now() + absl::Milliseconds(5));
  REQUIRE(second.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST_CASE("a deadline that was disarmed in time does not fire when it passes") {
  std::atomic<int> count = 0;
  Watchdog watchdog([&] { ++count; });
  watchdog.Arm(absl::Now() + absl::Milliseconds(100));
  watchdog.Disarm();
  absl::SleepFor(absl::Milliseconds(200));
  CHECK(count == 0);
}

TEST_CASE("disarming waits for an expiry that is running") {
  absl::Notification begun;
  std::atomic<bool> done = false;
  Watchdog watchdog([&] {
    begun.Notify();
    absl::SleepFor(absl::Milliseconds(100));
    done = true;
  });
  watchdog.Arm(absl::Now());
  REQUIRE(begun.WaitForNotificationWithTimeout(absl::Seconds(30)));
  watchdog.Disarm();
  CHECK(done);
}

TEST_CASE("a distant deadline can be brought forward while it is armed, and only then") {
  std::atomic<int> count = 0;
  absl::Notification fired;
  Watchdog watchdog([&] {
    ++count;
    fired.Notify();
  });
  watchdog.Expire();
  watchdog.Arm(absl::Now() + absl::Hours(1));
  watchdog.Disarm();
  watchdog.Expire();
  CHECK(count == 0);
  watchdog.Arm(absl::Now() + absl::Hours(1));
  watchdog.Expire();
  CHECK(fired.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST_CASE("bringing a deadline forward does not wait for the expiry that is running") {
  absl::Notification begun, go_on;
  Watchdog watchdog([&] {
    begun.Notify();
    go_on.WaitForNotification();
  });
  watchdog.Arm(absl::Now());
  REQUIRE(begun.WaitForNotificationWithTimeout(absl::Seconds(30)));
  watchdog.Expire();  // would never return
  go_on.Notify();
}

}  // namespace warpsmith
