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

}  // namespace warpsmith
