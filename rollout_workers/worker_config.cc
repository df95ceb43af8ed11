#include "rollout_workers/worker_config.h"

#include <memory>

#include "core/base/status_macros.h"
#include "core/config/config_file.h"

namespace warpsmith {
namespace {

// All sections of a run, whoever reads them.
std::vector<std::string> KnownSections() {
  return {"run", "model", "data", "trainer", "rollout", "reward_service"};
}

constexpr int64_t kSizeMax = int64_t{1} << 24;

void ReadSeconds(ConfigSection& section, std::string_view key, absl::Duration* duration) {
  double seconds = absl::ToDoubleSeconds(*duration);
  section.Read(key, &seconds, RealRange{.min = 0.1, .max = 86400});
  *duration = absl::Seconds(seconds);
}

// The shape is that of the checkpoint where there is one; keys that would contradict it are unknown then.
absl::Status ReadModel(ConfigSection& section, WorkerConfig* config) {
  section.Read("path", &config->model_path);
  auto seed = static_cast<int64_t>(config->init_seed);
  section.Read("init_seed", &seed, IntegerRange{.min = 0});
  config->init_seed = static_cast<uint64_t>(seed);
  if (!config->model_path.empty()) {
    RETURN_IF_ERROR(section.Finish());
    ASSIGN_OR_RETURN(config->model, LoadModelConfig(config->model_path));
    return absl::OkStatus();
  }
  VisitFields(config->model, [&](std::string_view key, auto* value) { section.Read(key, value); });
  RETURN_IF_ERROR(section.Finish());
  return ValidateModelConfig(config->model);
}

absl::Status ReadRollout(ConfigSection& section, WorkerConfig* config) {
  section.Read("waits_for_weights", &config->waits_for_weights);
  section.Read("num_slots", &config->num_slots, IntegerRange{.min = 1, .max = 4096});
  section.Read("context_tokens_max", &config->context_tokens_max, IntegerRange{.min = 2, .max = kSizeMax});
  section.Read("prefill_tokens_max", &config->prefill_tokens_max, IntegerRange{.min = 1, .max = kSizeMax});
  section.Read("num_threads", &config->num_threads, IntegerRange{.min = 1, .max = 256});
  section.Read("num_requests_max", &config->num_requests_max, IntegerRange{.min = 1, .max = 1024});
  section.Read("held_bytes_max", &config->held_bytes_max, IntegerRange{.min = 0});
  section.Read("reward_address", &config->reward_address);
  ConfigSection& channel = section.Section("reward_channel");
  channel.Read("authority", &config->reward_channel.tls.authority);
  channel.Read("certificate", &config->reward_channel.tls.certificate);
  channel.Read("key", &config->reward_channel.tls.key);
  channel.Read("token_file", &config->reward_channel.token_file);
  section.Read("grades_in_flight_max", &config->grades_in_flight_max, IntegerRange{.min = 1, .max = 4096});
  ReadSeconds(section, "grade_attempt_seconds", &config->grade_attempt_timeout);
  ReadSeconds(section, "grade_give_up_seconds", &config->grade_give_up);
  ReadSeconds(section, "drain_seconds", &config->drain_timeout);
  if (config->context_tokens_max > config->model.max_position_embeddings) {
    section.AddError("context_tokens_max", "is over the model's max_position_embeddings");
  }
  return section.Finish();
}

}  // namespace

absl::StatusOr<WorkerConfig> ReadWorkerConfig(const std::filesystem::path& path,
                                              const std::vector<std::string>& assignments) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ConfigFile> file,
                   ConfigFile::Load(path, KnownSections(), assignments));
  WorkerConfig config;
  RETURN_IF_ERROR(ReadModel(file->Section("model"), &config));
  ConfigSection& data = file->Section("data");  // the rest of it is the trainer's, who checks it
  data.Read("tokenizer", &config.tokenizer_directory);
  data.Read("prompts", &config.prompts_directory);
  RETURN_IF_ERROR(ReadRollout(file->Section("rollout"), &config));
  return config;
}

}  // namespace warpsmith
