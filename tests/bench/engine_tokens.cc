// Greedy tokens of a checkpoint by the engine, on each of several devices, for comparison with each other and with
// another implementation:
//
//   engine_tokens --model DIRECTORY --ids 1,2,3 --answer N --device cpu [--device cuda:0]... [--dtype float32]
//
// `dtype` is that of GPUs. Prints a line of JSON a device. No token ends an answer.
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/base/touch_constants.h"
#include "core/distributed/nccl_environment.h"
#include "core/model/model_config.h"
#include "rollout_workers/batch.h"
#include "rollout_workers/placement.h"
#include "rollout_workers/weights.h"

namespace warpsmith {
namespace {

constexpr int64_t kTokensMax = 1 << 16;  // of prompt and answer

struct Flags {
  std::string model, ids, answer, dtype = "auto";
  std::vector<std::string> devices;
};

absl::StatusOr<Flags> ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--model") {
      flags.model = value;
    } else if (name == "--ids") {
      flags.ids = value;
    } else if (name == "--answer") {
      flags.answer = value;
    } else if (name == "--dtype") {
      flags.dtype = value;
    } else if (name == "--device") {
      flags.devices.push_back(value);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("There is no flag ", name, "; give --model, --ids, --answer, --device or --dtype"));
    }
  }
  return flags;
}

absl::StatusOr<GenerationJob> JobFrom(const Flags& flags, const ModelConfig& config) {
  GenerationGroup group;
  const std::vector<std::string> words = absl::StrSplit(flags.ids, ',');
  for (const std::string& word : words) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(word, &id) || id < 0 || id >= config.vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("--ids wants token ids below ", config.vocab_size, ", not '", word, "'"));
    }
    group.prompt_token_ids.push_back(id);
  }
  int answer = 0;
  if (!absl::SimpleAtoi(flags.answer, &answer) || answer < 1 ||
      std::ssize(group.prompt_token_ids) + answer > kTokensMax) {
    return absl::InvalidArgumentError(absl::StrCat("--answer wants a number of tokens from 1 on, ",
                                                   kTokensMax, " with the prompt, not '", flags.answer, "'"));
  }
  group.samples.push_back({});
  GenerationJob job{.id = 1, .sampling = {.temperature = 0, .answer_tokens_max = answer}};
  job.groups.push_back(std::move(group));
  return job;
}

absl::StatusOr<LoadedWeights> WeightsFor(const ModelConfig& config, const Flags& flags, bool on_gpu) {
  if (on_gpu) return HuggingFaceDirectory(flags.model);
  return HuggingFaceWeights(config, flags.model);
}

// What one device makes of the job.
absl::StatusOr<nlohmann::json> Decode(const ModelConfig& config, const Flags& flags,
                                      const std::string& device, const GenerationJob& job) {
  const int64_t tokens = std::ssize(job.groups[0].prompt_token_ids) + job.sampling.answer_tokens_max;
  EngineOptions options{.num_slots = 1, .context_tokens_max = tokens + 1};
  ASSIGN_OR_RETURN(options.cuda, ParsePlacement(device, flags.dtype));
  if (options.cuda.has_value()) options.cuda->num_pages = static_cast<int>(tokens / 16 + 4);
  ASSIGN_OR_RETURN(const std::unique_ptr<Batch> batch, MakeBatch(config, options));
  ASSIGN_OR_RETURN(const LoadedWeights weights, WeightsFor(config, flags, options.cuda.has_value()));
  RETURN_IF_ERROR(batch->SetWeights(weights, paged::EntriesOnChange::kRequireNone));
  batch->Add(job);
  const absl::Time began = absl::Now();
  std::optional<FinishedSample> sample;
  for (int64_t step = 0; !batch->empty(); ++step) {
    if (step > 2 * tokens)
      return absl::InternalError(absl::StrCat(device, " did not end after ", step, " steps"));
    Batch::Outcome outcome = batch->Step();
    for (const FailedJob& failed : outcome.failed) return failed.status;
    for (FinishedSample& finished : outcome.finished) sample = std::move(finished);
  }
  if (!sample.has_value()) return absl::InternalError(absl::StrCat(device, " gave no answer"));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - began);
  const DeviceDtype dtype = options.cuda.has_value() ? options.cuda->dtype : DeviceDtype::kFloat32;
  return nlohmann::json{{"name", "tokens"},
                        {"device", device},
                        {"dtype", DtypeName(dtype)},
                        {"token_ids", sample->answer_token_ids},
                        {"log_probs", sample->log_probs},
                        {"token_ms", 1e3 * seconds / static_cast<double>(sample->answer_token_ids.size())}};
}

absl::Status Run(const Flags& flags) {
  ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(flags.model));
  ASSIGN_OR_RETURN(const GenerationJob job, JobFrom(flags, config));
  for (const std::string& device : flags.devices) {
    ASSIGN_OR_RETURN(const nlohmann::json line, Decode(config, flags, device, job));
    std::cout << line << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  warpsmith::LeaveMulticastOff();
  warpsmith::TouchConstants(warpsmith::kTorchLibrary);
  const absl::StatusOr<warpsmith::Flags> flags = warpsmith::ParseFlags(argc, argv);
  const absl::Status status = flags.ok() ? warpsmith::Run(*flags) : flags.status();
  if (!status.ok()) std::cerr << "engine_tokens: " << status.message() << std::endl;
  return status.ok() ? 0 : 1;
}
