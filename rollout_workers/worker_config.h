// What a run's configuration says to the rollout worker.
#ifndef WARPSMITH_ROLLOUT_WORKERS_WORKER_CONFIG_H_
#define WARPSMITH_ROLLOUT_WORKERS_WORKER_CONFIG_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/model/model_config.h"
#include "core/rpc/tls.h"

namespace warpsmith {

// Sections `model` and `data`, which the trainer reads as well, and `rollout`.
struct WorkerConfig {
  // Hugging Face directory to start from; empty: `model` and random weights.
  std::filesystem::path model_path;
  uint64_t init_seed = 1;
  ModelConfig model;

  std::filesystem::path tokenizer_directory = "datasets/tokenizer/small";
  std::filesystem::path prompts_directory = "datasets/prompts/small";

  // Whether the worker starts without weights, not serving until a trainer prepares and commits some.
  bool waits_for_weights = false;
  int num_slots = 64;
  int64_t context_tokens_max = 2048;
  int prefill_tokens_max = 4096;
  int num_threads = 1;
  int num_requests_max = 8;
  int64_t held_bytes_max = int64_t{512} << 20;
  std::string reward_address = "127.0.0.1:50061";
  ChannelFiles reward_channel;  // how that service is reached, where it wants more than an address
  int grades_in_flight_max = 64;
  absl::Duration grade_attempt_timeout = absl::Minutes(5);
  absl::Duration grade_give_up = absl::Minutes(10);
  absl::Duration drain_timeout = absl::Seconds(8);
};

// Reads `path` with `assignments` ("section.key=value") on top. INVALID_ARGUMENT with file, line and all
// faults.
absl::StatusOr<WorkerConfig> ReadWorkerConfig(const std::filesystem::path& path,
                                              const std::vector<std::string>& assignments);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_WORKER_CONFIG_H_
