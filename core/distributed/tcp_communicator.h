// The communicator of machines without GPUs: TCP, sums in rank order.
#ifndef WARPSMITH_CORE_DISTRIBUTED_TCP_COMMUNICATOR_H_
#define WARPSMITH_CORE_DISTRIBUTED_TCP_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/distributed/communicator.h"
#include "core/distributed/control_plane.h"
#include "core/distributed/process_group_environment.h"

namespace warpsmith {

// A communicator on host memory over a full mesh of connections. A sum is ((rank 0 + rank 1) + rank 2) + ...,
// whatever arrives first, so it repeats to the bit. Each rank sums one slice of the data, so every link
// carries 2 (n - 1) / n of it.
//
// Meets the other ranks of `control`, which outlives it, within `options.meeting_timeout`; alone, it needs no
// network.
absl::StatusOr<std::unique_ptr<Communicator>> CreateTcpCommunicator(
    const ProcessGroupEnvironment& environment, ControlPlane* control, const CommunicatorOptions& options);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_TCP_COMMUNICATOR_H_
