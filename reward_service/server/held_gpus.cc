#include "reward_service/server/held_gpus.h"

#include <unistd.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

void TellOfNoLease(const std::filesystem::path& directory, const absl::Status& status) {
  LogError(absl::StrCat(
      "no GPU is shared by turns: a trainer on one of them will compute while programs are timed there, and ",
      "their speed-ups will be wrong. ", status.ToString(), ". Let user ", geteuid(), " write to ",
      directory.string(), " (install -d -m 1777 ", directory.string(),
      "; in a container, mount the host's) and start the service again"));
}

std::optional<DeviceLease::Held> Hold(DeviceLease* lease, absl::Time deadline) {
  absl::StatusOr<DeviceLease::Held> held = lease->Take(absl::Now());
  if (!held.ok()) {
    LogWarning(absl::StrCat(held.status().message(), ": the service starts when that gives it up, or in ",
                            absl::FormatDuration(deadline - absl::Now())));
    held = lease->Take(deadline);
  }
  if (held.ok()) return *std::move(held);
  LogError(
      absl::StrCat(held.status().message(), ": what is measured there now is beside that process's work"));
  return std::nullopt;
}

}  // namespace

HeldGpus HoldGpus(const std::vector<std::string>& uuids, const HoldOptions& options) {
  HeldGpus gpus{std::vector<std::optional<DeviceLease>>(uuids.size()),
                std::vector<std::optional<DeviceLease::Held>>(uuids.size())};
  const absl::Time deadline = absl::Now() + options.wait_max;
  bool is_told = false;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < uuids.size(); ++i) {
    if (uuids[i].empty()) continue;
    absl::StatusOr<DeviceLease> lease = DeviceLease::Open(uuids[i], options.directory);
    if (!lease.ok()) {
      if (!std::exchange(is_told, true)) TellOfNoLease(options.directory, lease.status());
      continue;
    }
    gpus.leases[i].emplace(*std::move(lease));
    threads.emplace_back([&gpus, i, deadline] {
      std::optional<DeviceLease::Held> held = Hold(&*gpus.leases[i], deadline);
      if (held) gpus.held[i].emplace(*std::move(held));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return gpus;
}

}  // namespace warpsmith
