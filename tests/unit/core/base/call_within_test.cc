#include "core/base/call_within.h"

#include <memory>

#include "absl/synchronization/notification.h"
#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("a call that returns is waited for, and what it captured is gone then") {
  const auto value = std::make_shared<int>(1);
  const bool returned = CallWithin(absl::Seconds(60), [value] { ++*value; });
  CHECK(returned);
  CHECK(*value == 2);
  CHECK(value.use_count() == 1);
}

TEST_CASE("a call that does not return is left alone, and goes on") {
  const auto go_on = std::make_shared<absl::Notification>();
  const auto is_done = std::make_shared<absl::Notification>();
  CHECK_FALSE(CallWithin(absl::Milliseconds(20), [go_on, is_done] {
    go_on->WaitForNotification();
    is_done->Notify();
  }));
  CHECK_FALSE(is_done->HasBeenNotified());
  go_on->Notify();
  CHECK(is_done->WaitForNotificationWithTimeout(absl::Seconds(60)));
}

}  // namespace warpsmith
