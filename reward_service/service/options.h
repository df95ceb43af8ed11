// The section `reward_service` of a run's configuration.
#ifndef WARPSMITH_REWARD_SERVICE_SERVICE_OPTIONS_H_
#define WARPSMITH_REWARD_SERVICE_SERVICE_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/config/config_section.h"
#include "core/rpc/tls.h"
#include "reward_service/referee/judgement.h"
#include "reward_service/service/tenants.h"

namespace warpsmith {

struct ServiceOptions {
  // "host:port" or "unix:/path".
  std::string address = "127.0.0.1:50061";
  // "host:port" of the HTTP/JSON door; empty: none.
  std::string http_address;
  // Of both doors; a Unix socket is encrypted too.
  TlsFiles tls;
  // Empty: everybody may ask, as one tenant.
  std::vector<TenantOptions> tenants;
  // Cores that only judging uses; empty: the last of four or fewer, else the last quarter.
  std::vector<int> lane_cores;
  // Candidates judged at once, on equal parts of those cores. They share caches and memory: more lanes grade
  // faster and time less exactly.
  int num_lanes = 1;
  // Compilations at once; 0: one for each core outside the lane.
  int num_compile_workers = 0;
  // Requests that may wait; one more is refused with RetryInfo.
  int queue_capacity = 256;
  int64_t answer_bytes_max = int64_t{1} << 20;
  // Grades and compiled programs that are remembered.
  int64_t cache_bytes_max = int64_t{256} << 20;
  // Folder for compiled programs and precompiled headers; empty: warpsmith/reward under the user's cache
  // folder.
  std::filesystem::path cache_directory;
  int compile_seconds_max = 20;
  JudgeLimits judge;
  TimingEffort timing;
  // Seconds that a stopping service lets admitted requests end.
  double drain_seconds_max = 20;
};

// INVALID_ARGUMENT with the place of every fault.
absl::StatusOr<ServiceOptions> ReadServiceOptions(ConfigSection& section);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVICE_OPTIONS_H_
