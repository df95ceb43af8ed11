// Which system calls a confined process may make.
#ifndef WARPSMITH_REWARD_SERVICE_SANDBOX_SYSTEM_CALL_FILTER_H_
#define WARPSMITH_REWARD_SERVICE_SANDBOX_SYSTEM_CALL_FILTER_H_

#include "absl/status/status.h"

namespace warpsmith {

enum class ProcessRights {
  kOneProcess,  // threads, but no other process and no other program: jails and oracles
  kToolchain,   // may fork and execute: compilers
  // As kOneProcess, and the driver of a GPU that is open already may be asked for all that it does.
  kOneProcessWithGpu,
  kToolchainWithGpu,  // likewise of kToolchain: programs that are compiled while they run
};

// Loads the filter into the calling thread and all threads it will start; cannot be undone. Sets no_new_privs.
// With a GPU, whose driver has threads by then, into those, too.
// kOneProcess allows what programs that compute need, and of calls with dangerous flags the harmless ones;
// everything else fails with EPERM, or with ENOSYS where the C library then goes another way (clone3, whose
// flags no filter can read). A jail can hear nothing of other processes by it: no descriptors are passed, no
// signal reaches another process, no page of a file can be asked for, and all memory counts. With a GPU it does
// not: a driver shares memory with its kernel, and pins some, that no limit counts.
// kToolchain refuses sockets, tracing, namespaces, mounts, keys, kernel modules, shared memory ids, memory
// files and scheduling changes.
absl::Status LoadSystemCallFilter(ProcessRights rights);

// A filter beside that one: no memory becomes executable that was not, but by mapping a file that may be
// executed, for reading. Call it before LoadSystemCallFilter(). Programs that make code at run time, or have
// their stack executable, fail under it.
absl::Status RefuseNewCode();

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SANDBOX_SYSTEM_CALL_FILTER_H_
