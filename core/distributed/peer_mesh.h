// One TCP connection between every two processes of a run.
#ifndef WARPSMITH_CORE_DISTRIBUTED_PEER_MESH_H_
#define WARPSMITH_CORE_DISTRIBUTED_PEER_MESH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"
#include "core/distributed/process_group_environment.h"
#include "core/distributed/rendezvous_store.h"

namespace warpsmith {

// Connected sockets by rank; this rank's own entry is not valid. Each rank listens at the address from which
// it reaches the master, publishes it in `store` and is called by the higher ranks, who show a token that
// rank 0 drew. DEADLINE_EXCEEDED or UNAVAILABLE names the rank that could not be reached within `timeout`.
absl::StatusOr<std::vector<UniqueFd>> ConnectPeerMesh(const ProcessGroupEnvironment& environment,
                                                      RendezvousStore& store, absl::Duration timeout);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_PEER_MESH_H_
