// The section `reward_service` of a run's configuration.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_OPTIONS_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/config/config_section.h"
#include "core/rpc/tls.h"
#include "reward_service/grading/tenants.h"
#include "reward_service/measure/judge_request.h"
#include "reward_service/scoring/formulas.h"
#include "reward_service/server/gpu_choice.h"

namespace warpsmith {

// What each key means is said where options.cc reads it; docs/configuration.md has it.

// Second opinions on rubrics; no `url`: none.
struct LlmJudgeOptions {
  std::string url;
  std::string model;
  std::filesystem::path api_key_file;
  std::filesystem::path prompt_file;
  std::string response_format = "json_schema";
  double timeout_seconds = 30;  // turn and repetition included
  int max_concurrent = 4;
};

struct ServiceOptions {
  std::string address = "127.0.0.1:50061";
  std::string http_address;
  std::string default_formula{kDefaultFormula};
  TlsFiles tls;  // of both doors; a Unix socket is encrypted too
  std::vector<TenantOptions> tenants;
  std::vector<int> lane_cores;
  int num_lanes = 0;  // on cores; 0: one on each of lane_cores
  GpuChoice gpus;
  int num_compile_workers = 0;
  int queue_capacity = 256;
  int64_t cache_bytes_max = int64_t{256} << 20;
  std::filesystem::path cache_directory;  // never empty after reading
  int compile_seconds_max = 20;
  JudgeLimits judge;
  TimingEffort timing;
  LlmJudgeOptions llm_judge;
};

// INVALID_ARGUMENT with the place of every fault, files that are missing among them.
absl::StatusOr<ServiceOptions> ReadServiceOptions(ConfigSection& section);

// INVALID_ARGUMENT, with the names there are, where `trainer`.grpo.formula is no formula of this service: the
// trainer, who owns the key, knows none of them.
absl::Status CheckFormulaAskedFor(ConfigSection& trainer);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_OPTIONS_H_
