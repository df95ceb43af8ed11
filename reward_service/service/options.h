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

// A language model behind an OpenAI-compatible endpoint that gives second opinions on rubrics; no `url`:
// none.
struct LlmJudgeOptions {
  std::string url;
  std::string model;
  // File with the key; blanks around it do not count. Empty: none is sent.
  std::filesystem::path api_key_file;
  // Template of the question; empty: the one that is shipped.
  std::filesystem::path prompt_file;
  // "json_schema", "json_object" or "none".
  std::string response_format = "json_schema";
  // How long a grade waits for its opinion at most, turn and repetition included.
  double timeout_seconds = 30;
  // Requests at once.
  int max_concurrent = 4;
};

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
  // Compilations at once; 0: one for each core, without the lanes' where the judges have no real-time
  // priority.
  int num_compile_workers = 0;
  // Requests that may wait; one more is refused with RetryInfo.
  int queue_capacity = 256;
  int64_t answer_bytes_max = int64_t{1} << 20;
  // Grades and compiled programs that are remembered.
  int64_t cache_bytes_max = int64_t{256} << 20;
  // Folder for compiled programs and precompiled headers; empty: warpsmith/reward under the user's cache
  // folder. Where it cannot be written, compiling takes longer.
  std::filesystem::path cache_directory;
  int compile_seconds_max = 20;
  JudgeLimits judge;
  TimingEffort timing;
  LlmJudgeOptions llm_judge;
  // Seconds that a stopping service lets admitted requests end.
  double drain_seconds_max = 20;
};

// INVALID_ARGUMENT with the place of every fault.
absl::StatusOr<ServiceOptions> ReadServiceOptions(ConfigSection& section);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVICE_OPTIONS_H_
