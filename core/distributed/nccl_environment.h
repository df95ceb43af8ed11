// What NCCL reads of the environment, which may not be changed beside running threads.
#ifndef WARPSMITH_CORE_DISTRIBUTED_NCCL_ENVIRONMENT_H_
#define WARPSMITH_CORE_DISTRIBUTED_NCCL_ENVIRONMENT_H_

#include <cstdlib>

#include "absl/status/status.h"

namespace warpsmith {

// Leaves NVLink's multicast off, for hosts that are shared, unless NCCL_NVLS_ENABLE says otherwise. Call it first in
// main, before there is another thread; NCCL reads it once, at its first call.
inline void LeaveMulticastOff() { setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0); }

// FAILED_PRECONDITION where neither main nor the environment has said whether multicast is used.
inline absl::Status CheckMulticastIsDecided() {
  if (std::getenv("NCCL_NVLS_ENABLE") != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "NCCL_NVLS_ENABLE is not set: call LeaveMulticastOff at the start of main, or set it for the process");
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_NCCL_ENVIRONMENT_H_
