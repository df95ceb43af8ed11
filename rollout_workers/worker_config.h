// What a run's configuration says to the rollout worker.
#ifndef WARPSMITH_ROLLOUT_WORKERS_WORKER_CONFIG_H_
#define WARPSMITH_ROLLOUT_WORKERS_WORKER_CONFIG_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/model/model_config.h"
#include "core/rpc/tls.h"
#include "rollout_workers/placement.h"

namespace warpsmith {

// Sections `model` and `data`, which the trainer reads as well, and `rollout`; of `trainer`, where it is there, whether
// its answers fit. What the keys mean is said where
// they are read; docs/configuration.md has it.
struct WorkerConfig {
  std::filesystem::path model_path;
  ModelConfig model;

  std::filesystem::path tokenizer_directory = "datasets/tokenizer/small";
  std::filesystem::path prompts_directory = "datasets/prompts/small";

  bool waits_for_weights = false;
  int num_slots = 64;
  int64_t context_tokens_max = 2048;
  std::optional<CudaPlacement> cuda;  // none: the CPU
  int num_threads = 1;
  std::string reward_address = "127.0.0.1:50061";
  ChannelFiles reward_channel;
  absl::Duration grade_give_up = absl::Minutes(10);

  std::string resolved_yaml;  // section `rollout` with every default
};

// Reads `path` with `assignments` ("section.key=value") on top. INVALID_ARGUMENT with file, line and all
// faults, files that are missing among them.
absl::StatusOr<WorkerConfig> ReadWorkerConfig(const std::filesystem::path& path,
                                              const std::vector<std::string>& assignments);

// Every key of section `rollout`, as ConfigFile::Reference() writes them.
std::string WorkerConfigReference();

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_WORKER_CONFIG_H_
