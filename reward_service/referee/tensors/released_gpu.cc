#include "reward_service/referee/tensors/released_gpu.h"

#include <poll.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kReleaseTimeout = absl::Seconds(10);
constexpr int kReleasePauseMs = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<GpuStore>> OpenReleasedGpu(int index, int socket) {
  const absl::Time deadline = absl::Now() + kReleaseTimeout;
  for (;;) {
    absl::StatusOr<std::unique_ptr<GpuStore>> store = GpuStore::Open(index);
    if (!absl::IsResourceExhausted(store.status()) || absl::Now() > deadline) return store;
    pollfd hang_up{socket, POLLRDHUP, 0};
    if (poll(&hang_up, 1, kReleasePauseMs) > 0) return store;
  }
}

}  // namespace warpsmith
