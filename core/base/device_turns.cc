#include "core/base/device_turns.h"

#include <algorithm>
#include <utility>

namespace warpsmith {

absl::Status DeviceTurns::Take(absl::Time deadline) {
  while (!held()) {
    absl::StatusOr<DeviceLease::Held> next = leases_[held_.size()].Take(deadline);
    if (!next.ok()) {
      Give();
      return next.status();
    }
    held_.push_back(*std::move(next));
  }
  return absl::OkStatus();
}

bool DeviceTurns::IsWanted() const {
  return std::any_of(leases_.begin(), leases_.end(),
                     [](const DeviceLease& lease) { return lease.IsWanted(); });
}

}  // namespace warpsmith
