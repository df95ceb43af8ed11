// The GPUs of a service that starts, which other processes of the host use by turns with it.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_HELD_GPUS_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_HELD_GPUS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/device_lease.h"

namespace warpsmith {

// In the order of the UUIDs; nothing where there is none.
struct HeldGpus {
  std::vector<std::optional<DeviceLease>> leases;
  std::vector<std::optional<DeviceLease::Held>> held;  // end before their leases
};

struct HoldOptions {
  std::filesystem::path directory = "/run/lock";
  absl::Duration wait_max = absl::Minutes(10);  // of all of them together
};

// Waits until no other process has them: for all at once. Where the directory gives no lease, or a GPU stays in use,
// programs are judged all the same: a trainer there is then on their clocks, which the log says once, with what helps.
HeldGpus HoldGpus(const std::vector<std::string>& uuids, const HoldOptions& options = {});

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_HELD_GPUS_H_
