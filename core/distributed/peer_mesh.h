// TCP connections among the processes of a run.
#ifndef WARPSMITH_CORE_DISTRIBUTED_PEER_MESH_H_
#define WARPSMITH_CORE_DISTRIBUTED_PEER_MESH_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"
#include "core/base/wait_lines.h"
#include "core/distributed/process_group_environment.h"

namespace warpsmith {

enum class MeshShape {
  kFull,  // every two ranks are connected
  kStar,  // every rank is connected to rank 0
};

struct PeerMeshOptions {
  MeshShape shape = MeshShape::kFull;
  absl::Duration timeout;
  int interrupt_fd = -1;  // once it is readable, waiting for callers ends; -1 for none
  WaitLineOptions lines;
};

// Makes this rank's text known and returns those of all ranks, by rank; of a star, rank 0's is enough.
using TellRanks = absl::FunctionRef<absl::StatusOr<std::vector<std::string>>(const std::string& own)>;

// Connected sockets by rank; this rank's own entry, and those that the shape leaves out, are not valid. Each
// rank listens at the address from which it reaches the master, says so by `tell` and is called by the higher
// ranks, which show a token that rank 0 drew. DEADLINE_EXCEEDED or UNAVAILABLE names the rank that could not be
// reached within `options.timeout`; ABORTED when interrupted.
absl::StatusOr<std::vector<UniqueFd>> ConnectPeerMesh(const ProcessGroupEnvironment& environment,
                                                      TellRanks tell, const PeerMeshOptions& options);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_PEER_MESH_H_
