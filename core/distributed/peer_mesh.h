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

struct PeerMeshOptions {
  absl::Duration timeout;
  int interrupt_fd = -1;  // once it is readable, waiting for callers ends; -1 for none
  WaitLineOptions lines;
};

// Makes this rank's text known and returns those of all ranks, by rank.
using TellRanks = absl::FunctionRef<absl::StatusOr<std::vector<std::string>>(const std::string& own)>;

// Connects every two ranks. Returns the sockets by rank; this rank's own entry is not valid. Each rank tells its
// PeerAddress by `tell` and is called by the higher ranks. DEADLINE_EXCEEDED or UNAVAILABLE names the rank that could
// not be reached within `options.timeout`; ABORTED when interrupted.
absl::StatusOr<std::vector<UniqueFd>> ConnectPeerMesh(const ProcessGroupEnvironment& environment,
                                                      TellRanks tell, const PeerMeshOptions& options);

// "ranks 1, 3, which are to connect": those above `rank` whose entry is not valid.
std::string MissingRanks(const std::vector<UniqueFd>& peers, int rank);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_PEER_MESH_H_
