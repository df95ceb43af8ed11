#include "rollout_workers/serving/serve_mode.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signals.h"
#include "core/rpc/http_server.h"
#include "rollout_workers/lost_gpu.h"
#include "rollout_workers/serving/completion_service.h"
#include "rollout_workers/serving/openai_door.h"
#include "rollout_workers/serving/served_model.h"
#include "rollout_workers/weights.h"

namespace warpsmith::serving {
namespace {

constexpr absl::Duration kDrainTimeout = absl::Seconds(8);
constexpr absl::Duration kSendTimeout = absl::Seconds(2);  // for what was answered to be sent
constexpr int64_t kBodyBytesMax = int64_t{2} << 20;
constexpr int64_t kTokenFileBytesMax = 4096;
constexpr size_t kTokenBytesMin = 16;

EngineOptions EngineOptionsFrom(const ServeOptions& options, const ServedModel& model) {
  const int num_cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return {.num_slots = options.num_slots,
          .context_tokens_max = model.context_tokens_max,
          .samples_max = options.num_slots + options.waiting_max,
          .num_token_ids = model.tokenizer.vocab_size(),
          .stop_token_ids = model.stop_token_ids,
          .num_threads = options.num_threads > 0 ? options.num_threads : num_cores,
          .cuda = options.cuda};
}

// What a CPU reserves; a GPU's pages are told when they are taken.
std::string CacheOnTheHost(const ServeOptions& options, const ServedModel& model) {
  if (options.cuda.has_value()) return "";
  const int64_t bytes_a_token =
      2 * model.config.num_hidden_layers * model.config.key_value_size() * int64_t{sizeof(float)};
  return absl::StrCat(", ", (bytes_a_token * options.num_slots * model.context_tokens_max) >> 20,
                      " MiB of keys and values");
}

void Announce(const ServeOptions& options, const ServedModel& model) {
  const ModelConfig& config = model.config;
  LogInfo(absl::StrCat(CountParameters(config), " parameters; ", options.num_slots, " slots of ",
                       model.context_tokens_max, " tokens", CacheOnTheHost(options, model),
                       "; conversations as ",
                       model.chat_template.ok() ? model.chat_template->name()
                                                : std::string(model.chat_template.status().message())));
  if (!model.not_applied.empty()) {
    LogWarning(absl::StrCat(
        (options.model / "generation_config.json").string(), ": ", absl::StrJoin(model.not_applied, ", "),
        " is not applied: answers may differ from those of programs that do; docs/serving.md "
        "says what requests can ask for"));
  }
  const bool is_local =
      absl::StartsWith(options.address, "127.") || absl::StartsWith(options.address, "localhost:");
  if (options.token_file.empty() && !is_local) {
    LogWarning(
        absl::StrCat("everybody who reaches ", options.address, " may ask: --token-file keeps others out"));
  }
}

absl::StatusOr<std::unique_ptr<CompletionService>> MakeService(const ServeOptions& options,
                                                               const ServedModel& model,
                                                               std::function<void()> on_lost) {
  try {
    const EngineOptions engine_options = EngineOptionsFrom(options, model);
    ASSIGN_OR_RETURN(std::unique_ptr<Batch> batch, MakeBatch(model.config, engine_options));
    return std::make_unique<CompletionService>(model.config, engine_options, std::move(batch),
                                               std::move(on_lost));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the memory does not hold the keys and values of ", options.num_slots, " slots of ",
                     model.context_tokens_max, " tokens: lower --slots or --context"));
  }
}

absl::Status LoadWeights(const ServeOptions& options, const ServedModel& model, Engine* engine) {
  LoadedWeights weights = HuggingFaceDirectory(options.model);
  if (!options.cuda.has_value()) {
    ASSIGN_OR_RETURN(weights, HuggingFaceWeights(model.config, options.model));
  }
  return engine->SwapWeights(std::move(weights), absl::InfiniteFuture());  // nothing decodes yet
}

}  // namespace

absl::StatusOr<std::string> ReadTokenFile(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kTokenFileBytesMax));
  std::string token(absl::StripAsciiWhitespace(text));
  if (token.size() >= kTokenBytesMin) return token;
  return absl::InvalidArgumentError(absl::StrCat(path.string(), ": the token has ", token.size(),
                                                 " bytes, fewer than ", kTokenBytesMin,
                                                 "; openssl rand -hex 32 makes one"));
}

std::string NameOfFolder(const std::filesystem::path& folder) {
  const std::filesystem::path whole = std::filesystem::absolute(folder).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

absl::Status CheckHoldsCheckpoint(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::NotFoundError(
        absl::StrCat("--model ", folder.string(), ": ", error ? error.message() : "it is no folder"));
  }
  const auto has = [&](const char* name) {
    std::error_code ignored;
    return std::filesystem::exists(folder / name, ignored);
  };
  std::vector<std::string> missing;
  for (const char* const name : {"config.json", "tokenizer.json"}) {
    if (!has(name)) missing.emplace_back(name);
  }
  if (!has("model.safetensors") && !has("model.safetensors.index.json")) {
    missing.emplace_back("model.safetensors (or shards with model.safetensors.index.json)");
  }
  if (missing.empty()) return absl::OkStatus();
  const std::string way_out =
      has("export/config.json")
          ? absl::StrCat("its folder export is one: --model ", (folder / "export").string())
          : "`warpsmith export CONFIG` writes one of a run's newest checkpoint, into the folder export of "
            "the run";
  return absl::NotFoundError(absl::StrCat(folder.string(),
                                          " is no folder of a Hugging Face checkpoint: it lacks ",
                                          absl::StrJoin(missing, ", "), "; ", way_out));
}

absl::Status Serve(const ServeOptions& options, const sigset_t& stop_signals) {
  std::string token;
  if (!options.token_file.empty()) {
    ASSIGN_OR_RETURN(token, ReadTokenFile(options.token_file));
  }
  const std::string name = options.name.empty() ? NameOfFolder(options.model) : options.name;
  RETURN_IF_ERROR(CheckHoldsCheckpoint(options.model));
  ASSIGN_OR_RETURN(const ServedModel model, LoadServedModel(options.model, name, options.context_tokens_max));
  Announce(options, model);
  std::unique_ptr<CompletionService> service;
  OpenAiDoor door(&model, token);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<HttpServer> server,
      HttpServer::Start({.address = options.address,
                         .address_key = "--address",
                         .body_bytes_max = kBodyBytesMax,
                         .refusal = RefuseUnseen},
                        [&door](const std::shared_ptr<HttpExchange>& exchange) { door.Handle(exchange); }));
  std::cout << "listening on " << server->address() << std::endl;
  std::atomic<bool> is_serving = false;  // before that a lost GPU is an error of what loads the weights
  ASSIGN_OR_RETURN(service, MakeService(options, model, [&is_serving] {
                     if (is_serving) StopThisProcess();
                   }));
  // Our threads are there, with the signals blocked. No request is answered yet, so a signal may end all at once.
  pthread_sigmask(SIG_UNBLOCK, &stop_signals, nullptr);
  const absl::Status loaded = LoadWeights(options, model, &service->engine());
  ExitIfLost(service->engine().status().lost);
  RETURN_IF_ERROR(loaded);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
  is_serving = true;
  door.Open(service.get());
  std::cout << "serving " << model.name << " at http://" << server->address() << "/v1" << std::endl;

  const int signal = AwaitStopSignal(stop_signals);
  const int num_late = service->Drain(kDrainTimeout);
  server->AwaitAnswered(kSendTimeout);
  LogInfo(absl::StrCat("drained at signal ", signal, ", ", num_late, " requests were ended"));
  ExitIfLost(service->engine().status().lost);
  return absl::OkStatus();
}

}  // namespace warpsmith::serving
