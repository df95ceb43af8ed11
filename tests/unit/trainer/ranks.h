// Ranks as threads of one process, meeting over loopback as processes would.
#ifndef WARPSMITH_TESTS_UNIT_TRAINER_RANKS_H_
#define WARPSMITH_TESTS_UNIT_TRAINER_RANKS_H_

#include <functional>
#include <vector>

#include "core/distributed/tcp_communicator.h"
#include "tests/support/free_port.h"
#include "tests/support/run_together.h"

namespace warpsmith {

// Calls `work` once a rank, each with its own communicator; the statuses by rank.
inline std::vector<absl::Status> RunRanks(int size, const std::function<absl::Status(Communicator&)>& work) {
  std::vector<absl::Status> statuses(size);
  const int port = FreePort();
  RunTogether(size, [&](int rank) {
    const ProcessGroupEnvironment environment{.rank = rank, .world_size = size, .master_port = port};
    auto communicator = TcpCommunicator::Create(environment, {.deadline = absl::Seconds(30)});
    statuses[rank] = communicator.ok() ? work(**communicator) : communicator.status();
  });
  return statuses;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_TRAINER_RANKS_H_
