// Ranks as threads of one process, meeting over loopback as processes would.
#ifndef WARPSMITH_TESTS_UNIT_CORE_DISTRIBUTED_RANKS_H_
#define WARPSMITH_TESTS_UNIT_CORE_DISTRIBUTED_RANKS_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "core/base/absl_view.h"
#include "core/base/status_macros.h"
#include "core/distributed/control_plane.h"
#include "core/distributed/tcp_communicator.h"
#include "tests/support/catch.h"
#include "tests/support/free_port.h"

namespace warpsmith {

using RankWork = std::function<absl::Status(const ProcessGroupEnvironment& environment)>;

// Runs `work` once a rank, each on its own thread, and returns the statuses by rank.
inline std::vector<absl::Status> RunRanks(int size, const RankWork& work) {
  std::vector<absl::Status> statuses(size);
  std::vector<std::thread> threads;
  const int port = FreePort();
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back(
        [&, rank] { statuses[rank] = work({.rank = rank, .world_size = size, .master_port = port}); });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

// The same with a control plane each, which each leaves with the status of its work.
inline std::vector<absl::Status> RunControlRanks(int size, const ControlPlaneOptions& options,
                                                 const std::function<absl::Status(ControlPlane&)>& work) {
  return RunRanks(size, [&](const ProcessGroupEnvironment& environment) -> absl::Status {
    ASSIGN_OR_RETURN(const auto control, ControlPlane::Create(environment, options));
    const absl::Status status = work(*control);
    control->Leave(status);
    return status;
  });
}

// The same, where an error of the work is its outcome and no failure of its rank: all leave well.
inline std::vector<absl::Status> ControlOutcomes(int size,
                                                 const std::function<absl::Status(ControlPlane&)>& work) {
  std::vector<absl::Status> outcomes(size);
  const auto left = RunControlRanks(size, {}, [&](ControlPlane& control) {
    outcomes[control.rank()] = work(control);
    return absl::OkStatus();
  });
  for (const absl::Status& status : left) CHECK(status.ToString() == "OK");
  return outcomes;
}

inline bool AllOk(const std::vector<absl::Status>& statuses) {
  for (const absl::Status& status : statuses) {
    INFO(status.ToString());
    CHECK(status.ok());
  }
  return std::all_of(statuses.begin(), statuses.end(), [](const absl::Status& s) { return s.ok(); });
}

inline bool Contains(const absl::Status& status, std::string_view text) {
  return StdView(status.message()).find(text) != std::string_view::npos;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_CORE_DISTRIBUTED_RANKS_H_
