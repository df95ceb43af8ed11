// warpsmith-rollout: samples groups of answers and has them graded, as RolloutService.
//
//   warpsmith-rollout --config FILE [--set section.key=value]... [--address A] [--reward-address A]
//   warpsmith-rollout --config FILE [--set section.key=value]... --check
//   warpsmith-rollout --reference
//   warpsmith-rollout serve --model DIR [--address A]...
//
// Prints "listening on ADDRESS" to standard output once it listens; its health is SERVING once weights are
// loaded. Ends at SIGTERM or SIGINT, after what is under way or after eight seconds, and with status 1 when its GPU is
// lost. With `serve` it answers OpenAI's HTTP API instead: docs/serving.md.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signals.h"
#include "core/base/touch_constants.h"
#include "core/distributed/nccl_environment.h"
#include "core/model/hugging_face_checks.h"
#include "core/model/initial_seed.h"
#include "core/model/model_fields.h"
#include "core/rpc/channel.h"
#include "core/rpc/server.h"
#include "core/rpc/server_address.h"
#include "prompting/prompts.h"
#include "rollout_workers/batch.h"
#include "rollout_workers/engine.h"
#include "rollout_workers/lost_gpu.h"
#include "rollout_workers/placement.h"
#include "rollout_workers/rollout_service.h"
#include "rollout_workers/serving/serve_mode.h"
#include "rollout_workers/weights.h"
#include "rollout_workers/weights_switch.h"
#include "rollout_workers/worker.h"
#include "rollout_workers/worker_config.h"

namespace warpsmith {
namespace {

// Time of what is under way when the worker is told to end.
constexpr absl::Duration kDrainTimeout = absl::Seconds(8);

struct Flags {
  std::string config;
  std::vector<std::string> assignments;
  std::string address = "127.0.0.1:0";
  std::string reward_address;
  std::string log_level = "info";
  bool check = false;
  bool reference = false;
};

EngineOptions EngineOptionsFrom(const WorkerConfig& config, const Prompts& prompts) {
  return {.num_slots = config.num_slots,
          .context_tokens_max = config.context_tokens_max,
          .num_token_ids = prompts.tokenizer().vocab_size(),
          .stop_token_ids = prompts.stop_token_ids(),
          .num_threads = config.num_threads,
          .cuda = config.cuda,
          .takes_turns = true};
}

GradeClientOptions GradeOptionsFrom(const WorkerConfig& config) {
  return {.retries = {.num_attempts_max = 1000,  // the time is what bounds them
                      .elapsed_max = config.grade_give_up,
                      .delay_max = absl::Seconds(2)}};
}

absl::Status LoadInitialWeights(const WorkerConfig& config, Engine* engine) {
  if (config.waits_for_weights) {
    LogInfo("waits for a trainer to publish weights");
    return absl::OkStatus();
  }
  LoadedWeights weights;
  if (config.model_path.empty()) {
    weights = RandomWeights(config.model, kInitialSeed);
  } else if (config.cuda.has_value()) {
    weights = HuggingFaceDirectory(config.model_path);
  } else {
    ASSIGN_OR_RETURN(weights, HuggingFaceWeights(config.model, config.model_path));
  }
  return engine->SwapWeights(std::move(weights), absl::InfiniteFuture());  // nothing decodes yet
}

absl::StatusOr<Prompts> LoadPrompts(const WorkerConfig& config) {
  ASSIGN_OR_RETURN(Prompts prompts,
                   Prompts::Load(config.tokenizer_directory, config.prompts_directory, config.model_path));
  if (prompts.tokenizer().vocab_size() <= config.model.vocab_size) return prompts;
  return absl::InvalidArgumentError(
      absl::StrCat("data.tokenizer: the tokenizer has ", prompts.tokenizer().vocab_size(),
                   " tokens and model.vocab_size is ", config.model.vocab_size));
}

// Prints the resolved section to standard output, or every fault, a line each, to standard error.
int Check(const Flags& flags) {
  const absl::StatusOr<WorkerConfig> config = ReadWorkerConfig(flags.config, flags.assignments);
  const absl::Status status = config.ok() ? LoadPrompts(*config).status() : config.status();
  (status.ok() ? std::cout << config->resolved_yaml : std::cerr << status.message() << "\n") << std::flush;
  return status.ok() ? 0 : 1;
}

absl::Status Work(const Flags& flags, const sigset_t& stop_signals) {
  ASSIGN_OR_RETURN(const WorkerConfig config, ReadWorkerConfig(flags.config, flags.assignments));
  ASSIGN_OR_RETURN(const Prompts prompts, LoadPrompts(config));
  if (!flags.reward_address.empty()) {
    const absl::Status valid = CheckClientAddress(flags.reward_address);
    if (!valid.ok()) return absl::InvalidArgumentError(absl::StrCat("--reward-address: ", valid.message()));
  }
  const std::string reward_address =
      flags.reward_address.empty() ? config.reward_address : flags.reward_address;
  ASSIGN_OR_RETURN(const ChannelOptions reward_channel, ReadChannelFiles(config.reward_channel));
  const EngineOptions engine_options = EngineOptionsFrom(config, prompts);
  ASSIGN_OR_RETURN(std::unique_ptr<Batch> batch, MakeBatch(config.model, engine_options));
  Worker worker(config.model, engine_options, std::move(batch), {.on_lost = StopThisProcess}, &prompts,
                CreateChannel(reward_address, reward_channel), reward_address, GradeOptionsFrom(config));
  RETURN_IF_ERROR(LoadInitialWeights(config, &worker.engine()));  // before newer ones can be published
  WeightsSwitch weights(config.model, &worker.engine());
  RolloutService service(&worker, &weights,
                         {.layout_sha256 = LayoutSha256(config.model),
                          .prompts_sha256 = prompts.sha256(),
                          .model_fields = FieldsOf(config.model),
                          .stop_token_ids = prompts.stop_token_ids()});
  const std::string name = v1::RolloutService::service_full_name();
  ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server,
                   RpcServer::Start({.address = flags.address, .address_key = "--address"},
                                    {{.name = name, .service = &service}}));
  // Without weights the process itself ("") serves, for it can be given some, and the service does not.
  service.OnStateChange([&](RolloutService::State state) {
    using State = RolloutService::State;
    server->SetServing("", state == State::kDraining ? Serving::kNo : Serving::kYes);
    server->SetServing(name, state == State::kReady ? Serving::kYes : Serving::kNo);
  });
  std::cout << "listening on " << server->address() << std::endl;

  const int signal = AwaitStopSignal(stop_signals);
  const int num_cancelled = service.DrainNow(kDrainTimeout);
  LogInfo(absl::StrCat("drained at signal ", signal, ", ", num_cancelled, " groups were cancelled"));
  ExitIfLost(worker.engine().status().lost);  // a call that waits for the GPU would hold the server up
  server->Shutdown(absl::Seconds(1));
  return absl::OkStatus();
}

CLI::App* AddServe(CLI::App* app, serving::ServeOptions* options) {
  CLI::App* const serve = app->add_subcommand("serve", "answer OpenAI's HTTP API with a checkpoint");
  serve->add_option("--model", options->model, "folder of a Hugging Face checkpoint")->required();
  serve->add_option("--address", options->address, "host:port (port 0: any)")->capture_default_str();
  serve->add_option("--name", options->name, "that clients ask for, instead of the folder's");
  serve->add_option("--token-file", options->token_file, "file with a token that requests must carry")
      ->check(CLI::ExistingFile);
  serve
      ->add_option("--context", options->context_tokens_max,
                   "tokens of prompt and answer; else the model's, at most 4096")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 24));
  serve->add_option("--slots", options->num_slots, "answers that decode together")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  serve->add_option("--queue", options->waiting_max, "answers that may wait; more are refused by 429")
      ->capture_default_str()
      ->check(CLI::Range(0, 100'000));
  serve->add_option("--threads", options->num_threads, "that compute on the CPU; else one for each core")
      ->check(CLI::Range(1, 1024));
  return serve;
}

struct DeviceFlags {
  std::string device = "cpu";
  std::string dtype = "auto";
  double memory_share = CudaPlacement().memory_share;
};

void AddDevice(CLI::App* serve, DeviceFlags* flags) {
  serve->add_option("--device", flags->device, "what computes: cpu, cuda, cuda:N, or several GPUs, cuda:0,1")
      ->capture_default_str();
  serve
      ->add_option("--dtype", flags->dtype,
                   "what a GPU computes in: bfloat16, float16, or float32 to judge them by; auto is what the "
                   "checkpoint has, and bfloat16 where that is float32")
      ->capture_default_str();
  serve
      ->add_option("--memory-share", flags->memory_share,
                   "of a GPU's memory, for weights, keys and values; what other processes hold counts in")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 1.0));
}

absl::Status ServeOn(const DeviceFlags& flags, serving::ServeOptions options, const sigset_t& stop_signals) {
  ASSIGN_OR_RETURN(options.cuda, ParsePlacement(flags.device, flags.dtype));
  if (options.cuda.has_value()) {
    options.cuda->memory_share = flags.memory_share;
    if (flags.dtype == "auto") options.cuda->dtype = DtypeOfCheckpoint(options.model);
  }
  return serving::Serve(options, stop_signals);
}

// Logs why it ended, where that is an error; the exit status.
int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  LogError(std::string(status.message()));
  return 1;
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  warpsmith::LeaveMulticastOff();
  CLI::App app("Warpsmith's rollout worker");
  warpsmith::Flags flags;
  warpsmith::serving::ServeOptions serve_options;
  warpsmith::DeviceFlags device_flags;
  app.add_option("--config", flags.config, "configuration of the run");
  app.add_option("--set", flags.assignments, "section.key=value, on top of the file");
  app.add_option("--address", flags.address, "host:port (port 0: any) or unix:/path");
  app.add_option("--reward-address", flags.reward_address,
                 "of the reward service, instead of rollout.reward_address");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error");
  app.add_flag("--check", flags.check, "print the resolved section of the worker, or every fault; no more");
  app.add_flag("--reference", flags.reference, "print every key of that section with its meaning; no more");
  CLI::App* const serve = warpsmith::AddServe(&app, &serve_options);
  warpsmith::AddDevice(serve, &device_flags);
  serve->add_option("--log-level", flags.log_level, "debug, info, warning or error");
  CLI11_PARSE(app, argc, argv);
  if (flags.reference) {
    std::cout << warpsmith::WorkerConfigReference() << std::flush;
    return 0;
  }
  if (!serve->parsed() && flags.config.empty()) return app.exit(CLI::RequiredError("--config"));
  if (flags.check) return warpsmith::Check(flags);
  const sigset_t stop_signals = warpsmith::BlockStopSignals();
  warpsmith::SetUpLogging(serve->parsed() ? "serve" : "rollout", flags.log_level);
  warpsmith::TouchConstants(warpsmith::kTorchLibrary);
  return warpsmith::Report(serve->parsed() ? warpsmith::ServeOn(device_flags, serve_options, stop_signals)
                                           : warpsmith::Work(flags, stop_signals));
}
