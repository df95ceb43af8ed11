#include "trainer/configuration.h"

#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/config/config_file.h"
#include "core/rpc/server_address.h"
#include "proto/language_names.h"
#include "proto/request_limits.h"
#include "trainer/device_section.h"

namespace warpsmith {
namespace {

// All sections of a run, whoever reads them.
std::vector<std::string> KnownSections() {
  return {"run", "model", "data", "trainer", "rollout", "reward_service"};
}

// The sections that the trainer owns.
const std::vector<std::string> kOwnSections = {"run", "model", "data", "trainer"};

// How a missing task file is come by.
std::string_view WayTo(const std::filesystem::path& path) {
  const bool generated = path.parent_path().filename() == "generated";
  return generated ? "; ./dev datasets makes the files of that folder"
                   : "; docs/own_tasks.md says how to make one";
}

// Returns whether runs/`name` is no folder below runs.
bool LeavesFolder(const std::filesystem::path& name) {
  const std::filesystem::path normal = name.lexically_normal();
  return normal.empty() || normal.is_absolute() || normal == "." || *normal.begin() == "..";
}

void ReadRun(ConfigSection& section, RunSection* run) {
  section.Read("name", &run->name, {"", "Name of the run, in its summary and its folder."});
  if (LeavesFolder(run->name)) {
    section.AddError("name", "is \"" + Escape(run->name, 100) +
                                 "\", and runs/NAME must be a folder in runs: take a plain name, and "
                                 "run.directory for another place");
  }
  section.Read("directory", &run->directory, {"", "Folder of all results. Empty: runs/NAME."});
  if (run->directory.empty()) run->directory = std::filesystem::path("runs") / run->name;
  section.RequireWritable("directory", run->directory);
  int64_t seed = 0;
  section.Read("seed", &seed, {.min = 0}, {"", "Seed of the order of tasks and pairs and of all samples."});
  run->seed = static_cast<uint64_t>(seed);
}

// Sizes are required, for they have no default.
void ReadModelShape(ConfigSection& section, ModelConfig* config) {
  section.Read("vocab_size", &config->vocab_size, {},
               {"tokens", "Size of the vocabulary, at least that of the tokenizer."});
  section.Read("hidden_size", &config->hidden_size, {}, {"", "Width of the state of a token."});
  section.Read("intermediate_size", &config->intermediate_size, {},
               {"", "Width within the MLP, a multiple of 16."});
  section.Read("num_hidden_layers", &config->num_hidden_layers, {}, {"layers", "Number of decoder layers."});
  section.Read("num_attention_heads", &config->num_attention_heads, {}, {"heads", "Query heads of a layer."});
  section.Read("num_key_value_heads", &config->num_key_value_heads, {},
               {"heads", "Key and value heads of a layer. It divides num_attention_heads."});
  for (const char* const size : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                                 "num_attention_heads", "num_key_value_heads"}) {
    section.Require(size);
  }
  section.Read("head_dim", &config->head_dim, {}, {"", "Width of a head, even and at most 512."});
  section.Read("max_position_embeddings", &config->max_position_embeddings, {},
               {"tokens", "Longest sequence, prompt and completion together."});
  section.Read("rms_norm_eps", &config->rms_norm_eps, {}, {"", "What RMSNorm adds to the mean square."});
  section.Read("rope_theta", &config->rope_theta, {}, {"", "Base of the rotary position angles."});
  section.Read("tie_word_embeddings", &config->tie_word_embeddings,
               {"", "Whether the output head is the embedding matrix."});
}

// The shape is that of the checkpoint where there is one; keys that would contradict it are unknown then.
void ReadModel(ConfigSection& section, ModelSection* model) {
  section.Read("path", &model->path,
               {"",
                "Hugging Face folder to start from. Empty: random weights of the shape that the other keys "
                "give. These are the fields of a config.json; leave them out where there is a path."});
  if (model->path.empty()) ReadModelShape(section, &model->config);
  section.RequireFolder("path", model->path, {"config.json"});
  if (!section.Finish().ok()) return;
  if (model->path.empty()) {
    if (const absl::Status valid = ValidateModelConfig(model->config); !valid.ok()) {
      section.AddError("", StdView(valid.message()));
    }
    return;
  }
  const absl::StatusOr<ModelConfig> loaded = LoadModelConfig(model->path);
  if (loaded.ok()) model->config = *loaded;
  if (!loaded.ok()) section.AddError("path", StdView(loaded.status().message()));
}

// Prompts that describe one language's contract say which, in language.txt beside them. With those of another no answer
// would compile.
void CheckPromptLanguage(ConfigSection& section, const DataSection& data) {
  const absl::StatusOr<std::string> text = ReadFile(data.prompts / "language.txt");
  if (!text.ok()) return;
  const auto language = std::string(absl::StripAsciiWhitespace(*text));
  if (language == data.language) return;
  section.AddError("prompts", "asks for programs in " + language + ", and data.language is " + data.language);
}

void ReadData(ConfigSection& section, DataFiles files, DataSection* data) {
  section.Read("tokenizer", &data->tokenizer, {"", "Folder with the tokenizer.json of trainer and workers."});
  section.Read("prompts", &data->prompts,
               {"", "Folder with the prompt templates generate.txt and optimise.txt."});
  section.Read("train", &data->train,
               {"",
                "JSONL file of the skill-1 tasks that GRPO trains on. Required. docs/own_tasks.md says how "
                "to make one."});
  section.Read(
      "optimise", &data->optimise,
      {"", "JSONL file of skill-2 tasks. Empty: only those that are made of this run's own grades."});
  section.Read("cold_start", &data->cold_start,
               {"", "JSONL file of the pairs that SFT trains on. Empty: no SFT."});
  section.Read("cold_start_validation", &data->cold_start_validation,
               {"", "JSONL file of pairs whose loss decides when SFT ends. Required beside cold_start."});
  section.Read("held_out", &data->held_out,
               {"", "JSONL file of the tasks that the run is evaluated on. Required."});
  section.Read("unseen_operator", &data->unseen_operator,
               {"", "JSONL file of tasks that are evaluated apart. Empty: none."});
  section.ReadChoice("language", &data->language, LanguageNames(),
                     {"", "Language of the programs that the Coder writes."});
  section.Require("train");
  section.Require("held_out");
  if (!data->cold_start.empty() && data->cold_start_validation.empty()) {
    section.AddError("cold_start_validation", "is needed beside cold_start, for it decides when to end");
  }
  section.RequireFolder("tokenizer", data->tokenizer, {"tokenizer.json"});
  section.RequireFolder("prompts", data->prompts, {"generate.txt", "optimise.txt"});
  CheckPromptLanguage(section, *data);
  if (files == DataFiles::kNotRead) return;
  section.RequireFile("train", data->train, WayTo(data->train));
  section.RequireFile("optimise", data->optimise, WayTo(data->optimise));
  section.RequireFile("cold_start", data->cold_start, WayTo(data->cold_start));
  section.RequireFile("cold_start_validation", data->cold_start_validation,
                      WayTo(data->cold_start_validation));
  section.RequireFile("held_out", data->held_out, WayTo(data->held_out));
  section.RequireFile("unseen_operator", data->unseen_operator, WayTo(data->unseen_operator));
}

void ReadColdStart(ConfigSection& section, ColdStartSection* cold_start) {
  std::string matrix_update = "adamw";
  section.Read("seconds", &cold_start->seconds, {.min = 0},
               {"seconds", "SFT ends after this time. 0: no limit."});
  section.Read(
      "tokens", &cold_start->tokens, {.min = 0},
      {"tokens",
       "SFT ends after so many tokens, prompts included. 0: no limit. No SFT where both limits are 0."});
  section.Read("learning_rate", &cold_start->learning_rate, {.min = 0, .max = 1},
               {"", "Highest learning rate."});
  section.ReadChoice("matrix_update", &matrix_update, {"adamw", "muon"},
                     {"", "Optimiser of the matrices of the layers. AdamW updates everything else."});
  cold_start->matrix_update = matrix_update == "muon" ? MatrixUpdate::kMuon : MatrixUpdate::kAdamW;
  section.Read("num_warmup_steps", &cold_start->num_warmup_steps, {.min = 0},
               {"steps", "The learning rate rises from 0 in so many steps."});
  section.Read(
      "learning_rate_final", &cold_start->learning_rate_final, {.min = 0, .max = 1},
      {"share", "Share of learning_rate that is left at the limit; the fall is linear. 1: no fall."});
  section.Read("num_sequences", &cold_start->num_sequences, {.min = 1, .max = 1 << 20},
               {"pairs", "Pairs in a step, over all ranks."});
  section.Read("validation_steps", &cold_start->validation_steps, {.min = 1},
               {"steps", "Steps from one validation to the next."});
  section.Read("patience", &cold_start->patience, {.min = 1, .max = 1000},
               {"validations",
                "SFT ends after so many validations without a better loss, and keeps the best weights."});
}

void ReadLoss(ConfigSection& section, PolicyLossOptions* loss) {
  section.Read("clip_low", &loss->clip_low, {.min = 0, .max = 1},
               {"", "The importance ratio is clipped below 1 minus this."});
  section.Read("clip_high", &loss->clip_high, {.min = 0},
               {"", "The importance ratio is clipped above 1 plus this."});
  section.Read("kl_weight", &loss->kl_weight, {.min = 0},
               {"",
                "Weight of the k3 estimate of the KL divergence from the weights after SFT. 0: no such term, "
                "and no memory for those weights."});
}

void ReadSampling(ConfigSection& section, Sampling* sampling) {
  section.Read("temperature", &sampling->temperature, {.min = 0, .max = 10, .min_excluded = true},
               {"", "Logits are divided by this before a token is sampled."});
  section.Read(
      "top_p", &sampling->top_p, {.min = 0, .max = 1, .min_excluded = true},
      {"", "Tokens are sampled from the likeliest that have this probability together. 1: from all."});
  section.Read("top_k", &sampling->top_k, {.min = 0, .max = 1 << 20},
               {"tokens", "Tokens are sampled from so many of the likeliest. 0: from all."});
  section.Read("answer_tokens_max", &sampling->answer_tokens_max, {.min = 1, .max = 1 << 20},
               {"tokens", "A completion is cut off at this length."});
}

void ReadGrpo(ConfigSection& section, GrpoSection* grpo) {
  section.Read("num_steps", &grpo->num_steps, {.min = 0},
               {"steps", "GRPO ends after so many steps. 0: no GRPO."});
  section.Read("seconds", &grpo->seconds, {.min = 0}, {"seconds", "GRPO ends after this time. 0: no limit."});
  section.Read("learning_rate", &grpo->learning_rate, {.min = 0, .max = 1}, {"", "Highest learning rate."});
  section.Read("num_warmup_steps", &grpo->num_warmup_steps, {.min = 0},
               {"steps", "The learning rate rises from 0 in so many steps."});
  section.Read(
      "learning_rate_final", &grpo->learning_rate_final, {.min = 0, .max = 1},
      {"share", "Share of learning_rate that is left at the limit; the fall is linear. 1: no fall."});
  section.Read("num_tasks", &grpo->num_tasks, {.min = 1, .max = 4096},
               {"tasks", "Tasks in a step, each with a group of completions."});
  section.Read("num_samples", &grpo->num_samples, {.min = 2, .max = kGroupSamplesMax},
               {"completions", "Completions in a group."});
  section.Read("num_updates", &grpo->num_updates, {.min = 1, .max = 4096},
               {"", "Optimiser steps in a step, each on an equal share of its completions."});
  section.Read("formula", &grpo->formula,
               {"",
                "Name of the reward formula, in GRPO and in evaluations: docs/reward_formulas.md. Empty: the "
                "default of the reward service."});
  section.Read("optimise_share", &grpo->optimise_share, {.min = 0, .max = 1},
               {"share", "Share of the tasks that are of skill 2, as far as there are enough."});
  section.Read(
      "equal_spread", &grpo->equal_spread, {.min = 0},
      {"reward",
       "A group whose rewards lie closer together than this, or are equal, is a zero-variance group and is "
       "dropped."});
  section.Read("window_tasks", &grpo->window_tasks, {.min = 0},
               {"tasks",
                "So many tasks are drawn again and again before the next ones, because what the reward "
                "service has prepared for a task is cheap to use again. 0: all tasks."});
  section.Read("window_passes", &grpo->window_passes, {.min = 1, .max = 1000},
               {"passes", "Passes over the tasks of a window."});
  section.Read("num_refills", &grpo->num_refills, {.min = 0, .max = 100},
               {"rounds", "Rounds of dynamic sampling, in which other tasks replace zero-variance groups."});
  section.Read("permute_rewards", &grpo->permute_rewards,
               {"",
                "Whether rewards change places within each group: a control experiment in which nothing can "
                "be learned."});
  std::string advantage = "grpo";
  section.ReadChoice("advantage", &advantage, {"grpo", "dr_grpo"},
                     {"",
                      "Whether the distance of a reward from the mean of its group is divided by the "
                      "standard deviation (grpo) or not (dr_grpo)."});
  grpo->advantage = advantage == "grpo" ? AdvantageKind::kGrpo : AdvantageKind::kDrGrpo;
  ReadLoss(section, &grpo->loss);
  ReadSampling(section.Section("sampling", "How completions are sampled, in GRPO and in evaluations."),
               &grpo->sampling);
}

void ReadEvaluation(ConfigSection& section, EvaluationSection* evaluation) {
  section.Read("num_samples", &evaluation->num_samples, {.min = 1, .max = kGroupSamplesMax},
               {"completions", "Completions of each task and skill, beside a greedy one."});
  section.Read("every_steps", &evaluation->every_steps, {.min = 0},
               {"steps", "GRPO steps from one evaluation to the next. 0: only before and after GRPO."});
}

void ReadTrainer(ConfigSection& section, Configuration* configuration) {
  TrainerSection& trainer = configuration->trainer;
  ReadTrainerDevice(section, &trainer);
  section.Read("num_processes", &trainer.num_processes, {.min = 1, .max = 64},
               {"processes", "Trainer processes that warpsmith up starts. Other launchers set WORLD_SIZE."});
  section.Read("num_threads", &trainer.num_threads, {.min = 1, .max = 1024},
               {"threads", "Threads of each trainer process."});
  section.Read(
      "micro_batch_tokens", &trainer.micro_batch_tokens, {.min = 1},
      {"tokens", "Tokens that are computed together. It bounds memory and does not change the gradient."});
  section.Read("weight_decay", &trainer.weight_decay, {.min = 0}, {"", "Weight decay of the matrices."});
  section.Read("gradient_norm_max", &trainer.gradient_norm_max, {.min = 0, .min_excluded = true},
               {"", "A gradient with a larger norm is scaled down to this one."});
  section.Read("checkpoint_steps", &trainer.checkpoint_steps, {.min = 1},
               {"steps", "GRPO steps from one checkpoint to the next."});
  section.Read("checkpoints_kept", &trainer.checkpoints_kept, {.min = 1, .max = 1000},
               {"checkpoints", "Checkpoints that are kept; older ones are deleted."});
  section.Read("publish_directory", &trainer.publish_directory,
               {"",
                "Folder through which workers get new weights. Empty: /dev/shm, else the folder of the run. "
                "Workers on other machines need a shared one."});
  section.RequireWritable("publish_directory", trainer.publish_directory);
  section.Read(
      "rollout_addresses", &trainer.rollout_addresses,
      {"", "Addresses of the rollout workers, host:port or unix:/path. --rollout-address overrides them."});
  for (const std::string& address : trainer.rollout_addresses) {
    const absl::Status valid = CheckClientAddress(address);
    if (!valid.ok()) section.AddError("rollout_addresses", StdView(valid.message()));
  }
  section.Read(
      "collective_timeout_seconds", &trainer.collective_timeout_seconds, {.min = 1},
      {"seconds",
       "Longest time of a collective of the update. All ranks compute then, so a longer one is stuck."});
  section.Read(
      "rollout_wait_seconds", &trainer.rollout_wait_seconds, {.min = 1},
      {"seconds",
       "Longest wait for a rollout worker that does not serve. Then the trainer ends with an error."});
  ReadColdStart(
      section.Section("cold_start", "SFT on pairs, before GRPO. It ends at the first of its limits."),
      &configuration->cold_start);
  ReadGrpo(section.Section("grpo", "Reinforcement learning. It ends at the first of its limits."),
           &configuration->grpo);
  ReadEvaluation(section.Section("evaluation", "Evaluations on the held-out tasks."),
                 &configuration->evaluation);
  CheckTrainerDevice(section, *configuration);
}

Configuration ReadSections(ConfigFile& file, DataFiles files) {
  Configuration configuration;
  ReadRun(file.Section("run"), &configuration.run);
  ReadModel(file.Section("model"), &configuration.model);
  ReadData(file.Section("data"), files, &configuration.data);
  ReadTrainer(file.Section("trainer"), &configuration);
  configuration.resolved_yaml = file.ResolvedYaml();
  configuration.values = file.ResolvedValues(kOwnSections);
  return configuration;
}

}  // namespace

absl::StatusOr<Configuration> ReadConfiguration(const std::filesystem::path& path,
                                                const std::vector<std::string>& assignments,
                                                DataFiles files) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ConfigFile> file,
                   ConfigFile::Load(path, KnownSections(), assignments));
  Configuration configuration = ReadSections(*file, files);
  RETURN_IF_ERROR(file->Finish());
  return configuration;
}

absl::StatusOr<std::string> ResolveConfiguration(const std::filesystem::path& path,
                                                 const std::vector<std::string>& assignments) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ConfigFile> file,
                   ConfigFile::Load(path, KnownSections(), assignments));
  ReadSections(*file, DataFiles::kRequired);
  RETURN_IF_ERROR(file->Finish());
  return file->ResolvedYaml(kOwnSections);
}

std::string ConfigurationReference() {
  const std::unique_ptr<ConfigFile> nothing = ConfigFile::Load("", KnownSections()).value();
  ReadSections(*nothing, DataFiles::kNotRead);
  return nothing->Reference(kOwnSections);
}

}  // namespace warpsmith
