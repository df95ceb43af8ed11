// Turns of one thread on several devices that it uses together.
#ifndef WARPSMITH_CORE_BASE_DEVICE_TURNS_H_
#define WARPSMITH_CORE_BASE_DEVICE_TURNS_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/device_lease.h"

namespace warpsmith {

// For one thread; movable. Without leases held() is always true.
class DeviceTurns {
 public:
  DeviceTurns() = default;
  // `leases` of different devices, sorted by the devices' names: so processes that want several devices never wait for
  // each other in a circle.
  explicit DeviceTurns(std::vector<DeviceLease> leases) : leases_(std::move(leases)) {}

  // Takes all devices, if this does not hold them yet. DEADLINE_EXCEEDED names the process that has one of them; none
  // is held then. The errors of DeviceLease::Take.
  absl::Status Take(absl::Time deadline);
  // Gives them up. REQUIRES: they are idle.
  void Give() { held_.clear(); }

  bool held() const { return held_.size() == leases_.size(); }
  // Returns whether another process waits for one of them. REQUIRES: held().
  bool IsWanted() const;

 private:
  std::vector<DeviceLease> leases_;
  std::vector<DeviceLease::Held> held_;  // of the first leases
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_DEVICE_TURNS_H_
