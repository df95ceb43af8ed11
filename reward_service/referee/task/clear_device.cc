#include "reward_service/referee/task/clear_device.h"

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace warpsmith {

absl::Status ClearDevice(absl::FunctionRef<absl::Status()> await_idle, absl::FunctionRef<bool()> end_waiting,
                         TaskPool* pool) {
  absl::Status idle = await_idle();
  if (absl::IsDeadlineExceeded(idle) && end_waiting()) {
    LogWarning(
        "somebody has left work on the GPU: candidates that waited to be timed, or to end, are killed");
    idle = await_idle();
  }
  if (absl::IsDeadlineExceeded(idle)) {
    LogWarning(
        "a reference has left work on the GPU: all oracles and references end, and oracles have it alone "
        "from now on");
    pool->EndOracles();
    idle = await_idle();
  }
  if (idle.ok()) return idle;
  return absl::UnavailableError(absl::StrCat("the device cannot be used: ", idle.message()));
}

}  // namespace warpsmith
