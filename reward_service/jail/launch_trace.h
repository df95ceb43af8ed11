// What this process launches on its GPU, told by CUPTI's activity records (CUPTI's documentation, "Activity API").
//
// Nothing is watched before BeginTrace(), so what was timed until then ran as if CUPTI were not there. One trace at a
// time, by one thread; CUPTI starts a thread of its own. Code of others in the process can change whatever is told.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_LAUNCH_TRACE_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_LAUNCH_TRACE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reward_service/jail/launches.h"

namespace warpsmith {

// In a zygote, once: maps the library, for in a sealed jail no file is code, and does nothing else. NOT_FOUND where it
// cannot be loaded or lacks a function; UNIMPLEMENTED where CUPTI's header was not there when this was built.
absl::Status LoadCupti(const char* path);

// From now on kernels, copies and fills are recorded. FAILED_PRECONDITION without LoadCupti(); INTERNAL with CUPTI's
// reason.
absl::Status BeginTrace();

// To be called when all that was launched is done. Of calls that launch more than some 300,000 times, records are
// missing.
absl::StatusOr<Launches> EndTrace();

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_LAUNCH_TRACE_H_
