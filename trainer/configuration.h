// What the trainer reads of a run's configuration file.
#ifndef WARPSMITH_TRAINER_CONFIGURATION_H_
#define WARPSMITH_TRAINER_CONFIGURATION_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/model_config.h"
#include "trainer/advantages.h"
#include "trainer/group_generator.h"
#include "trainer/matrix_update.h"
#include "trainer/policy_loss.h"

namespace warpsmith {

// Section "run": shared by all processes.
struct RunSection {
  std::string name = "run";
  std::filesystem::path directory;  // of all results; default runs/<name>
  uint64_t seed = 0;
};

// Section "model": shared by trainer and workers.
struct ModelSection {
  std::filesystem::path
      path;  // a Hugging Face directory to start from; empty: random weights of the shape in `config`
  uint64_t init_seed = 1;  // of random weights
  ModelConfig config;      // of the directory, or of the section's keys
};

// Section "data": JSONL files, and what prompts are made with, which trainer and workers share.
struct DataSection {
  std::filesystem::path tokenizer = "datasets/tokenizer/small";  // directory with tokenizer.json
  std::filesystem::path prompts = "datasets/prompts/small";  // directory with generate.txt and optimise.txt
  std::filesystem::path train;
  std::filesystem::path optimise;    // tasks of skill 2 beside those made of grades; empty: none
  std::filesystem::path cold_start;  // empty: none
  std::filesystem::path cold_start_validation;
  std::filesystem::path held_out;
  std::filesystem::path unseen_operator;  // empty: none
  std::string language = "cpp";           // of the answers
};

// Section "trainer.cold_start". Ends at the first of its limits; 0 is no limit, both 0 is no cold start.
struct ColdStartSection {
  double seconds = 0;
  int64_t tokens = 0;  // trained on, prompts included
  double learning_rate = 2e-3;
  MatrixUpdate matrix_update = MatrixUpdate::kAdamW;
  int64_t num_warmup_steps = 50;
  double learning_rate_final = 0.1;  // as a share of learning_rate, when a limit is reached
  int num_sequences = 8;             // in a step, over all ranks
  int64_t validation_steps = 250;    // from one validation to the next
  int patience = 4;                  // validations without a better loss before it ends
};

// Section "trainer.grpo". Ends at the first of its limits; `num_steps` 0 is no GRPO, `seconds` 0 no limit of
// time.
struct GrpoSection {
  int64_t num_steps = 0;
  double seconds = 0;
  double learning_rate = 4e-4;
  int64_t num_warmup_steps = 3;
  double learning_rate_final = 1.0;  // as a share of learning_rate, when a limit is reached
  int num_tasks = 8;                 // groups in an update
  int num_samples = 8;               // answers a group
  int num_updates = 1;               // optimiser steps a step, on equal shares of the groups
  double optimise_share = 0.25;      // of the tasks, from the feedback pool
  int feedback_pool_size = 256;
  int64_t window_tasks = 0;      // tasks drawn together before the next ones come: see TaskWindow. 0: all
  int64_t window_passes = 1;     // times that they are drawn
  double equal_spread = 0.05;    // rewards closer than that say nothing
  int num_refills = 2;           // rounds in which equal groups are replaced
  bool permute_rewards = false;  // the control experiment: rewards change places within each group
  AdvantageKind advantage = AdvantageKind::kGrpo;
  PolicyLossOptions loss;
  Sampling sampling;
};

// Section "trainer", what concerns neither phase alone.
struct TrainerSection {
  int num_processes = 1;  // of `warpsmith up`; other launchers say WORLD_SIZE
  int num_threads = 2;    // of each process
  int64_t micro_batch_tokens = 4096;
  double weight_decay = 0.0;
  double gradient_norm_max = 1.0;
  int64_t checkpoint_steps = 10;  // GRPO steps from one to the next
  int checkpoints_kept = 2;
  std::filesystem::path publish_directory;  // where workers find new weights; empty: /dev/shm, else the run's
  std::vector<std::string> rollout_addresses;
  double collective_timeout_seconds = 1800;
  // Until every rollout worker serves at the start, and later until one of them is back when all are lost.
  double rollout_wait_seconds = 300;
};

// Section "trainer.evaluation".
struct EvaluationSection {
  int num_samples = 8;      // a task and skill
  int64_t every_steps = 0;  // GRPO steps between evaluations on the way; 0: only before and after
};

struct Configuration {
  RunSection run;
  ModelSection model;
  DataSection data;
  TrainerSection trainer;
  ColdStartSection cold_start;
  GrpoSection grpo;
  EvaluationSection evaluation;
  std::string resolved_yaml;  // with all defaults, to be stored with the run
};

// Reads `path` with `assignments` ("section.key=value") on top. INVALID_ARGUMENT lists every fault with its
// place.
absl::StatusOr<Configuration> ReadConfiguration(const std::filesystem::path& path,
                                                const std::vector<std::string>& assignments);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_CONFIGURATION_H_
