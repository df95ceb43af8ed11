// The communicator of GPUs: NCCL, one device a process.
#ifndef WARPSMITH_CORE_DISTRIBUTED_NCCL_COMMUNICATOR_H_
#define WARPSMITH_CORE_DISTRIBUTED_NCCL_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/distributed/communicator.h"
#include "core/distributed/control_plane.h"
#include "core/distributed/process_group_environment.h"

namespace warpsmith {

// A communicator on memory of device `local_rank` of the environment, on a stream of its own; a call returns
// when the collective is done on the device. Data must be ready: synchronise the producing stream first. The
// NCCL communicator is non-blocking, so that a peer that is gone or late never keeps this process: the
// watchdog aborts it, its kernels end, and the call returns. Built with the preset `cuda` only.
//
// Meets the other ranks of `control`, which outlives it, within `options.meeting_timeout`. UNAVAILABLE or
// DEADLINE_EXCEEDED with NCCL's own words otherwise.
absl::StatusOr<std::unique_ptr<Communicator>> CreateNcclCommunicator(
    const ProcessGroupEnvironment& environment, ControlPlane* control, const CommunicatorOptions& options);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_NCCL_COMMUNICATOR_H_
