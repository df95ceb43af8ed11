// A device with nothing to do, for whoever has it alone.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TASK_CLEAR_DEVICE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TASK_CLEAR_DEVICE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "reward_service/referee/task/task_pool.h"

namespace warpsmith {

// Waits until the device has nothing to do, by `await_idle`, which gives up with DEADLINE_EXCEEDED after a time of its
// own. Where it does not come to rest first the processes that wait there end (`end_waiting`: whether there were any),
// and then the oracles and references of all tasks of the pool. For whoever has its turn alone. UNAVAILABLE: it is
// still at work.
absl::Status ClearDevice(absl::FunctionRef<absl::Status()> await_idle, absl::FunctionRef<bool()> end_waiting,
                         TaskPool* pool);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TASK_CLEAR_DEVICE_H_
