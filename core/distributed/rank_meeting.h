// How the ranks of one attempt at a run find rank 0, over a store that may hold what earlier attempts left.
#ifndef WARPSMITH_CORE_DISTRIBUTED_RANK_MEETING_H_
#define WARPSMITH_CORE_DISTRIBUTED_RANK_MEETING_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"
#include "core/base/wait_lines.h"
#include "core/distributed/process_group_environment.h"
#include "core/distributed/rendezvous_store.h"

namespace warpsmith {

struct MetRanks {
  std::unique_ptr<RendezvousStore> store;  // rank 0 may serve it: it lives as long as the connections
  std::vector<UniqueFd> peers;  // by rank: all others on rank 0, else rank 0; other entries are not valid
};

// Connects every rank to rank 0, and returns when all ranks are connected.
//
// No launcher names the attempt: restart counts differ between agents of which one was replaced. So rank 0 writes its
// address over the former one, and the others follow the newest address until rank 0 says that all have met. An address
// that an earlier attempt left has no listener, or one that ends before that. A rank that calls twice has been
// started again: its last connection counts.
//
// UNAVAILABLE: no store within `timeout`, or rank 0 cannot serve it. DEADLINE_EXCEEDED says which ranks did not come.
absl::StatusOr<MetRanks> MeetRanks(const ProcessGroupEnvironment& environment, absl::Duration timeout,
                                   const WaitLineOptions& lines);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_RANK_MEETING_H_
