#include "reward_service/referee/task/room_on_device.h"

#include <poll.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

constexpr int kPauseMs = 100;

}  // namespace

bool RoomOnDevice::MayBeThere(const absl::Status& failure) {
  if (turn_ == nullptr || turn_->is_shared()) return false;
  // A driver that lacks memory says other things, too.
  const bool lacks_memory = absl::IsResourceExhausted(failure) || is_crowded_();
  if (failed_first_ != absl::InfiniteFuture()) {
    if (!lacks_memory) return false;
  } else {
    failed_first_ = absl::Now();
    deadline_ = std::min(deadline_, absl::Now() + kTimeMax);
    const bool has_ended = end_waiting_();
    // They may have had all of something else, of the few channels of a GPU say: once more without them.
    if (!lacks_memory && !has_ended) return false;
    LogInfo(absl::StrCat("tried again, for the GPU lacks memory", has_ended ? " that others kept: " : ": ",
                         failure.message()));
  }
  if (absl::Now() + absl::Milliseconds(kPauseMs) > deadline_) return false;
  poll(nullptr, 0, kPauseMs);
  return true;
}

absl::Duration RoomOnDevice::waited() const {
  return std::max(absl::ZeroDuration(), absl::Now() - failed_first_);
}

}  // namespace warpsmith
