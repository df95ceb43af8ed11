// What the trainer reads of a run's configuration file.
#ifndef WARPSMITH_TRAINER_CONFIGURATION_H_
#define WARPSMITH_TRAINER_CONFIGURATION_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/model_config.h"
#include "core/model/training/matrix_update.h"
#include "core/model/training/recomputation.h"
#include "trainer/data/group_generator.h"
#include "trainer/update/advantages.h"
#include "trainer/update/policy_loss.h"

namespace warpsmith {

// What each key means, its unit and what it may be is said where configuration.cc reads it; `warpsmith-train
// --reference` prints it, docs/configuration.md has it. Here stands what callers need beyond that.

// Section "run": shared by all processes.
struct RunSection {
  std::string name = "run";
  std::filesystem::path directory;  // never empty after reading
  uint64_t seed = 0;
};

// Section "model": shared by trainer and workers.
struct ModelSection {
  std::filesystem::path path;
  ModelConfig config;  // of the folder `path`, or of the section's keys
};

// Section "data": JSONL files, and what prompts are made with, which trainer and workers share.
struct DataSection {
  std::filesystem::path tokenizer = "datasets/tokenizer/small";
  std::filesystem::path prompts = "datasets/prompts/small";
  std::filesystem::path train;
  std::filesystem::path optimise;
  std::filesystem::path cold_start;
  std::filesystem::path cold_start_validation;
  std::filesystem::path held_out;
  std::filesystem::path unseen_operator;
  std::string language = "cpp";
};

// Section "trainer.cold_start".
struct ColdStartSection {
  double seconds = 0;
  int64_t tokens = 0;
  double learning_rate = 2e-3;
  MatrixUpdate matrix_update = MatrixUpdate::kAdamW;
  int64_t num_warmup_steps = 50;
  double learning_rate_final = 0.1;
  int num_sequences = 8;
  int64_t validation_steps = 250;
  int patience = 4;
};

// Section "trainer.grpo".
struct GrpoSection {
  int64_t num_steps = 0;
  double seconds = 0;
  double learning_rate = 4e-4;
  int64_t num_warmup_steps = 3;
  double learning_rate_final = 1.0;
  int num_tasks = 8;
  int num_samples = 8;
  int num_updates = 1;
  std::string formula;
  double optimise_share = 0.25;
  int64_t window_tasks = 0;  // see TaskWindow
  int64_t window_passes = 1;
  double equal_spread = 0.05;
  int num_refills = 2;
  bool permute_rewards = false;
  AdvantageKind advantage = AdvantageKind::kGrpo;
  PolicyLossOptions loss;
  Sampling sampling;
};

// Section "trainer", what concerns neither phase alone.
struct TrainerSection {
  std::optional<int> gpu;  // that the passes are computed on; nothing: the CPU
  int num_processes = 1;
  int num_threads = 2;
  int64_t micro_batch_tokens = 4096;
  Recomputation recomputation = Recomputation::kNone;
  bool deterministic = true;  // concerns a GPU; the CPU always is
  double weight_decay = 0.0;
  double gradient_norm_max = 1.0;
  int64_t checkpoint_steps = 10;
  int checkpoints_kept = 2;
  std::filesystem::path publish_directory;
  std::vector<std::string> rollout_addresses;
  double collective_timeout_seconds = 1800;
  // Until every rollout worker serves at the start, and later until one of them is back when all are lost.
  double rollout_wait_seconds = 300;
};

// Section "trainer.evaluation".
struct EvaluationSection {
  int num_samples = 8;
  int64_t every_steps = 0;
};

struct Configuration {
  RunSection run;
  ModelSection model;
  DataSection data;
  TrainerSection trainer;
  ColdStartSection cold_start;
  GrpoSection grpo;
  EvaluationSection evaluation;
  std::string resolved_yaml;                  // with all defaults, to be stored with the run
  std::map<std::string, std::string> values;  // of the trainer's own sections, by key, defaults among them
};

// Whether the files of section "data" must be there: an export reads none of them.
enum class DataFiles { kRequired, kNotRead };

// Reads `path` with `assignments` ("section.key=value") on top. INVALID_ARGUMENT lists every fault of all
// sections with its place, files that are missing among them.
absl::StatusOr<Configuration> ReadConfiguration(const std::filesystem::path& path,
                                                const std::vector<std::string>& assignments,
                                                DataFiles files = DataFiles::kRequired);

// The trainer's own sections as YAML with every default; the errors of ReadConfiguration.
absl::StatusOr<std::string> ResolveConfiguration(const std::filesystem::path& path,
                                                 const std::vector<std::string>& assignments);

// Every key of the trainer's own sections, as ConfigFile::Reference() writes them.
std::string ConfigurationReference();

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_CONFIGURATION_H_
