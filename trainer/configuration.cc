#include "trainer/configuration.h"

#include <algorithm>

#include "core/base/status_macros.h"
#include "core/config/config_file.h"

namespace warpsmith {
namespace {

// All sections of a run, whoever reads them.
std::vector<std::string> KnownSections() {
  return {"run", "model", "data", "trainer", "rollout", "reward_service"};
}

absl::Status ReadRun(ConfigSection& section, RunSection* run) {
  section.Read("name", &run->name);
  run->directory = std::filesystem::path("runs") / run->name;
  section.Read("directory", &run->directory);
  int64_t seed = 0;
  section.Read("seed", &seed, {.min = 0});
  run->seed = static_cast<uint64_t>(seed);
  return section.Finish();
}

// The shape is that of the checkpoint where there is one; keys that would contradict it are unknown then.
absl::Status ReadModel(ConfigSection& section, ModelSection* model) {
  section.Read("path", &model->path);
  int64_t seed = static_cast<int64_t>(model->init_seed);
  section.Read("init_seed", &seed, {.min = 0});
  model->init_seed = static_cast<uint64_t>(seed);
  if (!model->path.empty()) {
    RETURN_IF_ERROR(section.Finish());
    ASSIGN_OR_RETURN(model->config, LoadModelConfig(model->path));
    return absl::OkStatus();
  }
  VisitFields(model->config, [&](std::string_view key, auto* value) { section.Read(key, value); });
  RETURN_IF_ERROR(section.Finish());
  return ValidateModelConfig(model->config);
}

absl::Status ReadData(ConfigSection& section, DataSection* data) {
  section.Read("tokenizer", &data->tokenizer);
  section.Read("prompts", &data->prompts);
  section.Read("train", &data->train);
  section.Read("optimise", &data->optimise);
  section.Read("cold_start", &data->cold_start);
  section.Read("cold_start_validation", &data->cold_start_validation);
  section.Read("held_out", &data->held_out);
  section.Read("unseen_operator", &data->unseen_operator);
  section.ReadChoice("language", &data->language, {"cpp", "kernelbench_python", "cuda"});
  section.Require("train");
  section.Require("held_out");
  if (!data->cold_start.empty() && data->cold_start_validation.empty()) {
    section.AddError("cold_start_validation", "is needed beside cold_start, for it decides when to end");
  }
  return section.Finish();
}

void ReadColdStart(ConfigSection& section, ColdStartSection* cold_start) {
  std::string matrix_update = "adamw";
  section.Read("seconds", &cold_start->seconds, {.min = 0});
  section.Read("tokens", &cold_start->tokens, {.min = 0});
  section.Read("learning_rate", &cold_start->learning_rate, {.min = 0, .max = 1});
  section.ReadChoice("matrix_update", &matrix_update, {"adamw", "muon"});
  cold_start->matrix_update = matrix_update == "muon" ? MatrixUpdate::kMuon : MatrixUpdate::kAdamW;
  section.Read("num_warmup_steps", &cold_start->num_warmup_steps, {.min = 0});
  section.Read("learning_rate_final", &cold_start->learning_rate_final, {.min = 0, .max = 1});
  section.Read("num_sequences", &cold_start->num_sequences, {.min = 1, .max = 1 << 20});
  section.Read("validation_steps", &cold_start->validation_steps, {.min = 1});
  section.Read("patience", &cold_start->patience, {.min = 1});
}

void ReadLoss(ConfigSection& section, PolicyLossOptions* loss) {
  section.Read("clip_low", &loss->clip_low, {.min = 0, .max = 1});
  section.Read("clip_high", &loss->clip_high, {.min = 0});
  section.Read("importance_weight_max", &loss->weight_max, {.min = 0, .min_excluded = true});
  section.Read("kl_weight", &loss->kl_weight, {.min = 0});
}

void ReadSampling(ConfigSection& section, Sampling* sampling) {
  section.Read("temperature", &sampling->temperature, {.min = 0, .max = 10, .min_excluded = true});
  section.Read("top_p", &sampling->top_p, {.min = 0, .max = 1, .min_excluded = true});
  section.Read("top_k", &sampling->top_k, {.min = 0});
  section.Read("answer_tokens_max", &sampling->answer_tokens_max, {.min = 1, .max = 1 << 20});
}

void ReadGrpo(ConfigSection& section, GrpoSection* grpo) {
  section.Read("num_steps", &grpo->num_steps, {.min = 0});
  section.Read("seconds", &grpo->seconds, {.min = 0});
  section.Read("learning_rate", &grpo->learning_rate, {.min = 0, .max = 1});
  section.Read("num_warmup_steps", &grpo->num_warmup_steps, {.min = 0});
  section.Read("learning_rate_final", &grpo->learning_rate_final, {.min = 0, .max = 1});
  section.Read("num_tasks", &grpo->num_tasks, {.min = 1, .max = 4096});
  section.Read("num_samples", &grpo->num_samples, {.min = 2, .max = 4096});
  section.Read("num_updates", &grpo->num_updates, {.min = 1, .max = 4096});
  section.Read("optimise_share", &grpo->optimise_share, {.min = 0, .max = 1});
  section.Read("feedback_pool_size", &grpo->feedback_pool_size, {.min = 1, .max = 1 << 20});
  section.Read("equal_spread", &grpo->equal_spread, {.min = 0});
  section.Read("window_tasks", &grpo->window_tasks, {.min = 0});
  section.Read("window_passes", &grpo->window_passes, {.min = 1, .max = 1000});
  section.Read("num_refills", &grpo->num_refills, {.min = 0, .max = 100});
  section.Read("permute_rewards", &grpo->permute_rewards);
  std::string advantage = "grpo";
  section.ReadChoice("advantage", &advantage, {"grpo", "dr_grpo"});
  grpo->advantage = advantage == "grpo" ? AdvantageKind::kGrpo : AdvantageKind::kDrGrpo;
  ReadLoss(section, &grpo->loss);
  ReadSampling(section.Section("sampling"), &grpo->sampling);
}

void ReadEvaluation(ConfigSection& section, EvaluationSection* evaluation) {
  section.Read("num_samples", &evaluation->num_samples, {.min = 1, .max = 1024});
  section.Read("every_steps", &evaluation->every_steps, {.min = 0});
}

absl::Status ReadTrainer(ConfigSection& section, Configuration* configuration) {
  TrainerSection& trainer = configuration->trainer;
  section.Read("num_processes", &trainer.num_processes, {.min = 1, .max = 64});
  section.Read("num_threads", &trainer.num_threads, {.min = 1, .max = 1024});
  section.Read("micro_batch_tokens", &trainer.micro_batch_tokens, {.min = 1});
  section.Read("weight_decay", &trainer.weight_decay, {.min = 0});
  section.Read("gradient_norm_max", &trainer.gradient_norm_max, {.min = 0, .min_excluded = true});
  section.Read("checkpoint_steps", &trainer.checkpoint_steps, {.min = 1});
  section.Read("checkpoints_kept", &trainer.checkpoints_kept, {.min = 1, .max = 1000});
  section.Read("publish_directory", &trainer.publish_directory);
  section.Read("rollout_addresses", &trainer.rollout_addresses);
  section.Read("collective_timeout_seconds", &trainer.collective_timeout_seconds, {.min = 1});
  section.Read("rollout_wait_seconds", &trainer.rollout_wait_seconds, {.min = 1});
  ReadColdStart(section.Section("cold_start"), &configuration->cold_start);
  ReadGrpo(section.Section("grpo"), &configuration->grpo);
  ReadEvaluation(section.Section("evaluation"), &configuration->evaluation);
  return section.Finish();
}

}  // namespace

absl::StatusOr<Configuration> ReadConfiguration(const std::filesystem::path& path,
                                                const std::vector<std::string>& assignments) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ConfigFile> file,
                   ConfigFile::Load(path, KnownSections(), assignments));
  Configuration configuration;
  RETURN_IF_ERROR(ReadRun(file->Section("run"), &configuration.run));
  RETURN_IF_ERROR(ReadModel(file->Section("model"), &configuration.model));
  RETURN_IF_ERROR(ReadData(file->Section("data"), &configuration.data));
  RETURN_IF_ERROR(ReadTrainer(file->Section("trainer"), &configuration));
  configuration.resolved_yaml = file->ResolvedYaml();
  return configuration;
}

}  // namespace warpsmith
