#include "rollout_workers/worker_config.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/status_macros.h"
#include "core/config/config_file.h"
#include "core/rpc/server_address.h"
#include "proto/request_limits.h"

namespace warpsmith {
namespace {

// All sections of a run, those of other processes included.
std::vector<std::string> KnownSections() {
  return {"run", "model", "data", "trainer", "rollout", "reward_service"};
}

constexpr int64_t kSizeMax = int64_t{1} << 24;

void ReadSeconds(ConfigSection& section, std::string_view key, absl::Duration* duration, KeyHelp help) {
  double seconds = absl::ToDoubleSeconds(*duration);
  section.Read(key, &seconds, RealRange{.min = 0.1, .max = 86400}, help);
  *duration = absl::Seconds(seconds);
}

// The shape is that of the checkpoint where there is one; keys that would contradict it are unknown then. The
// trainer, whose section it is, says what the keys mean.
void ReadModel(ConfigSection& section, WorkerConfig* config) {
  section.Read("path", &config->model_path);
  if (config->model_path.empty()) {
    VisitFields(config->model, [&](std::string_view key, auto* value) {
      section.Read(key, value);
      if (*value == 0 && key != "tie_word_embeddings") section.Require(key);  // a size: it has no default
    });
  }
  section.RequireFolder("path", config->model_path, {"config.json"});
  if (!section.Finish().ok()) return;
  if (config->model_path.empty()) {
    if (const absl::Status valid = ValidateModelConfig(config->model); !valid.ok()) {
      section.AddError("", StdView(valid.message()));
    }
    return;
  }
  const absl::StatusOr<ModelConfig> loaded = LoadModelConfig(config->model_path);
  if (loaded.ok()) config->model = *loaded;
  if (!loaded.ok()) section.AddError("path", StdView(loaded.status().message()));
}

// The two keys of section `data` that the worker needs; the trainer checks the rest.
void ReadData(ConfigSection& section, WorkerConfig* config) {
  section.IgnoreOtherKeys();
  section.Read("tokenizer", &config->tokenizer_directory);
  section.Read("prompts", &config->prompts_directory);
  section.RequireFolder("tokenizer", config->tokenizer_directory, {"tokenizer.json"});
  section.RequireFolder("prompts", config->prompts_directory, {"generate.txt", "optimise.txt"});
}

// Tokens of an answer that the trainer of the same file will ask for; 0 where the file has no trainer. The trainer
// checks the section, and says what its keys mean.
int ReadAnswerTokens(ConfigSection& trainer) {
  if (trainer.WrittenKeys().empty()) return 0;
  ConfigSection& grpo = trainer.Section("grpo");
  ConfigSection& sampling = grpo.Section("sampling");
  for (ConfigSection* const section : {&trainer, &grpo, &sampling}) section->IgnoreOtherKeys();
  int answer_tokens = kAnswerTokensDefault;
  sampling.Read("answer_tokens_max", &answer_tokens, IntegerRange{.min = 1, .max = 1 << 20});
  return answer_tokens;
}

void ReadChannel(ConfigSection& section, ChannelFiles* channel) {
  section.Read("authority", &channel->tls.authority,
               {"",
                "PEM file of the authority that signed the certificate of the service, or system. Encrypts "
                "the channel."});
  section.Read("certificate", &channel->tls.certificate,
               {"", "PEM file of the certificate of the worker, where the service asks for one."});
  section.Read("key", &channel->tls.key, {"", "PEM file of the key of that certificate."});
  section.Read("token_file", &channel->token_file,
               {"", "File with the token of the tenant that the worker belongs to."});
  if (channel->tls.authority != "system") section.RequireFile("authority", channel->tls.authority);
  section.RequireFile("certificate", channel->tls.certificate);
  section.RequireFile("key", channel->tls.key);
  section.RequireFile("token_file", channel->token_file);
}

void ReadDevice(ConfigSection& section, std::optional<CudaPlacement>* cuda) {
  std::string device = "cpu";
  section.Read(
      "device", &device,
      {"",
       "What decodes: cpu, cuda (the first GPU), cuda:N, or several GPUs that share one model, cuda:0,1 or "
       "cuda:0-3. On a GPU weights are in bfloat16, or in what follows it, float16 or float32, as in cuda:0 "
       "float16. Weights, keys and values take up to 0.9 of its memory, or the share that follows the dtype, "
       "as in cuda:0 auto 0.6; what other processes hold counts in."});
  const absl::StatusOr<std::optional<CudaPlacement>> placement = ParsePlacementWords(device);
  if (placement.ok()) *cuda = *placement;
  if (!placement.ok()) section.AddError("device", StdView(placement.status().message()));
}

void ReadRollout(ConfigSection& section, int answer_tokens, WorkerConfig* config) {
  ReadDevice(section, &config->cuda);
  section.Read("waits_for_weights", &config->waits_for_weights,
               {"", "Whether the worker starts without weights and serves once the trainer has sent some."});
  section.Read("num_slots", &config->num_slots, IntegerRange{.min = 1, .max = 4096},
               {"samples", "Samples that are decoded together."});
  section.Read("context_tokens_max", &config->context_tokens_max, IntegerRange{.min = 2, .max = kSizeMax},
               {"tokens",
                "Longest sample, prompt and completion together. On the CPU memory is reserved for each "
                "slot, on a GPU for what "
                "fits."});
  section.Read("num_threads", &config->num_threads, IntegerRange{.min = 1, .max = 256},
               {"threads", "Threads that decode on the CPU."});
  section.Read(
      "reward_address", &config->reward_address,
      {"", "Address of the reward service, host:port or unix:/path. --reward-address overrides it."});
  if (const absl::Status valid = CheckClientAddress(config->reward_address); !valid.ok()) {
    section.AddError("reward_address", StdView(valid.message()));
  }
  ReadChannel(section.Section("reward_channel",
                              "How the reward service is reached, where it wants more than "
                              "an address."),
              &config->reward_channel);
  ReadSeconds(section, "grade_give_up_seconds", &config->grade_give_up,
              {"seconds", "A sample that has no grade after this time is UNSCORABLE."});
  if (config->context_tokens_max > config->model.max_position_embeddings) {
    section.AddError("context_tokens_max", "is over the model's max_position_embeddings");
  }
  if (answer_tokens >= config->context_tokens_max) {
    section.AddError(
        "context_tokens_max",
        absl::StrCat("is ", config->context_tokens_max, ", and trainer.grpo.sampling.answer_tokens_max is ",
                     answer_tokens, ": no room for a prompt; raise the one or lower the other"));
  }
}

WorkerConfig ReadSections(ConfigFile& file) {
  WorkerConfig config;
  ReadModel(file.Section("model"), &config);
  ReadData(file.Section("data"), &config);
  ReadRollout(file.Section("rollout"), ReadAnswerTokens(file.Section("trainer")), &config);
  config.resolved_yaml = file.ResolvedYaml({"rollout"});
  return config;
}

}  // namespace

absl::StatusOr<WorkerConfig> ReadWorkerConfig(const std::filesystem::path& path,
                                              const std::vector<std::string>& assignments) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ConfigFile> file,
                   ConfigFile::Load(path, KnownSections(), assignments));
  WorkerConfig config = ReadSections(*file);
  RETURN_IF_ERROR(file->Finish());
  return config;
}

std::string WorkerConfigReference() {
  const std::unique_ptr<ConfigFile> nothing = ConfigFile::Load("", KnownSections()).value();
  ReadSections(*nothing);
  return nothing->Reference({"rollout"});
}

}  // namespace warpsmith
