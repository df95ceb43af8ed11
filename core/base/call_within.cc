#include "core/base/call_within.h"

#include <memory>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"

namespace warpsmith {

bool CallWithin(absl::Duration patience, std::function<void()> call) {
  const auto returned = std::make_shared<absl::Notification>();
  std::thread([returned, call = std::move(call)]() mutable {
    call();
    call = nullptr;  // what it captured is gone when the caller hears of it
    returned->Notify();
  }).detach();
  return returned->WaitForNotificationWithTimeout(patience);
}

}  // namespace warpsmith
