// Which system calls a confined process may make.
#ifndef WARPSMITH_REWARD_SERVICE_SANDBOX_SYSTEM_CALL_FILTER_H_
#define WARPSMITH_REWARD_SERVICE_SANDBOX_SYSTEM_CALL_FILTER_H_

#include "absl/status/status.h"

namespace warpsmith {

enum class ProcessRights {
  kOneProcess,  // threads, but no other process and no other program: jails and oracles
  kToolchain,   // may fork and execute: compilers
};

// Loads the filter into the calling thread and all threads it will start; cannot be undone. Refused calls
// fail with EPERM (clone3 with ENOSYS, which makes the C library use clone, whose flags a filter can read).
// In both kinds: no sockets, no tracing, no namespaces, mounts, keys, kernel modules, shared memory ids,
// memory files or scheduling changes, and no signal to another process. Sets no_new_privs.
absl::Status LoadSystemCallFilter(ProcessRights rights);

// A filter beside that one: no memory becomes executable that was not, but by mapping a file that may be
// executed, for reading. Call it before LoadSystemCallFilter(). Programs that make code at run time, or have
// their stack executable, fail under it.
absl::Status RefuseNewCode();

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SANDBOX_SYSTEM_CALL_FILTER_H_
