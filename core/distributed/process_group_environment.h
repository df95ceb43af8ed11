// The place of this process among those of a run, as torchrun and its like say it.
#ifndef WARPSMITH_CORE_DISTRIBUTED_PROCESS_GROUP_ENVIRONMENT_H_
#define WARPSMITH_CORE_DISTRIBUTED_PROCESS_GROUP_ENVIRONMENT_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace warpsmith {

// The variables of torchrun (pytorch.org/docs/stable/elastic/run.html), Slurm wrappers and our own launcher.
struct ProcessGroupEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  std::string master_address = "127.0.0.1";
  int master_port = 0;          // 0 only when world_size is 1
  bool agent_store = false;     // a TCPStore is served at the master's address by the launcher's agent
  std::string run_id = "none";  // the same on all ranks of a run
  int restart_count = 0;  // attempts before this one that this rank's launcher knows of: ranks may differ
  int restarts_max = 0;   // attempts that the launcher adds at most

  // Prefix of every key in the store, which may serve other runs too. The same for all attempts at a run.
  std::string KeyPrefix() const;
};

// Value of an environment variable, or nothing.
using EnvironmentLookup = std::function<std::optional<std::string>(const char* name)>;

// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
// TORCHELASTIC_USE_AGENT_STORE, TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT, SLURM_RESTART_COUNT and
// TORCHELASTIC_MAX_RESTARTS. With neither RANK nor WORLD_SIZE the process is alone. LOCAL_WORLD_SIZE, which few
// launchers set, only bounds LOCAL_RANK.
// INVALID_ARGUMENT names the variable that is missing, is no number or contradicts another.
absl::StatusOr<ProcessGroupEnvironment> ReadProcessGroupEnvironment(const EnvironmentLookup& lookup);

// Looks up in the environment of this process.
std::optional<std::string> LookUpEnvironment(const char* name);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_PROCESS_GROUP_ENVIRONMENT_H_
