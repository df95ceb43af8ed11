#include "core/distributed/process_group_environment.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// The variable as an integer in [low, high]; `fallback` when unset, or an error when there is none.
absl::StatusOr<int> ReadInteger(const EnvironmentLookup& lookup, const char* name, int low, int high,
                                std::optional<int> fallback) {
  const std::optional<std::string> text = lookup(name);
  if (!text.has_value()) {
    if (fallback.has_value()) return *fallback;
    return absl::InvalidArgumentError(
        absl::StrCat("environment variable ", name,
                     " is not set; start with torchrun, or set all of RANK, "
                     "WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or none for a single process"));
  }
  int value = 0;
  if (!absl::SimpleAtoi(*text, &value) || value < low || value > high) {
    return absl::InvalidArgumentError(absl::StrCat("environment variable ", name, " is \"", Escape(*text, 64),
                                                   "\"; it must be an integer from ", low, " to ", high));
  }
  return value;
}

absl::Status ReadMaster(const EnvironmentLookup& lookup, ProcessGroupEnvironment& environment) {
  const std::optional<std::string> address = lookup("MASTER_ADDR");
  if (!address.has_value() || address->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("environment variable MASTER_ADDR is not set, but WORLD_SIZE is ",
                     environment.world_size, "; start with torchrun or set it"));
  }
  environment.master_address = *address;
  ASSIGN_OR_RETURN(environment.master_port, ReadInteger(lookup, "MASTER_PORT", 1, 65535, std::nullopt));
  return absl::OkStatus();
}

// A job that Slurm has queued again starts torchrun anew, which then counts from 0.
absl::StatusOr<int> ReadRestartCount(const EnvironmentLookup& lookup) {
  constexpr int kRestartsMax = 1 << 20;
  ASSIGN_OR_RETURN(const int by_torchrun,
                   ReadInteger(lookup, "TORCHELASTIC_RESTART_COUNT", 0, kRestartsMax, 0));
  ASSIGN_OR_RETURN(const int by_slurm, ReadInteger(lookup, "SLURM_RESTART_COUNT", 0, kRestartsMax, 0));
  return by_torchrun + by_slurm;
}

}  // namespace

std::string ProcessGroupEnvironment::KeyPrefix() const { return absl::StrCat("warpsmith/", run_id, "/"); }

absl::StatusOr<ProcessGroupEnvironment> ReadProcessGroupEnvironment(const EnvironmentLookup& lookup) {
  ProcessGroupEnvironment environment;
  ASSIGN_OR_RETURN(environment.restart_count, ReadRestartCount(lookup));
  if (!lookup("RANK").has_value() && !lookup("WORLD_SIZE").has_value()) return environment;

  constexpr int kRanksMax = 1 << 20;
  ASSIGN_OR_RETURN(environment.world_size, ReadInteger(lookup, "WORLD_SIZE", 1, kRanksMax, std::nullopt));
  ASSIGN_OR_RETURN(environment.rank,
                   ReadInteger(lookup, "RANK", 0, environment.world_size - 1, std::nullopt));
  ASSIGN_OR_RETURN(const int local_world_size, ReadInteger(lookup, "LOCAL_WORLD_SIZE", 1,
                                                           environment.world_size, environment.world_size));
  ASSIGN_OR_RETURN(environment.local_rank, ReadInteger(lookup, "LOCAL_RANK", 0, local_world_size - 1, 0));
  ASSIGN_OR_RETURN(environment.restarts_max,
                   ReadInteger(lookup, "TORCHELASTIC_MAX_RESTARTS", 0, kRanksMax, 0));
  environment.agent_store = lookup("TORCHELASTIC_USE_AGENT_STORE") == "True";
  environment.run_id = lookup("TORCHELASTIC_RUN_ID").value_or("none");
  if (environment.world_size > 1) RETURN_IF_ERROR(ReadMaster(lookup, environment));
  return environment;
}

std::optional<std::string> LookUpEnvironment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace warpsmith
