// warpsmith-train: trains, evaluates and exports a Coder.
//
//   warpsmith-train --config FILE [--set section.key=value]... [--resume | --overwrite]
//                   [--check] [--mode train|cold_start|eval|export] [--rollout-address A]...
//
// One process of a run; several are started by torchrun --no-python, by `warpsmith up`, or by whatever sets
// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. SIGTERM and SIGINT save a checkpoint at the end of the step
// and end with 3.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/touch_constants.h"
#include "core/distributed/process_group_environment.h"
#include "core/distributed/tcp_communicator.h"
#include "trainer/configuration.h"
#include "trainer/training.h"

namespace {

constexpr int kExitStopped = 3;

// Signal handlers reach nothing else.
std::atomic<bool> stop_requested = false;

void RequestStop(int) { stop_requested = true; }

struct Flags {
  std::string config;
  std::vector<std::string> assignments;
  std::string log_level = "info";
  warpsmith::TrainingOptions options;
};

absl::Status Run(Flags flags) {
  ASSIGN_OR_RETURN(const warpsmith::Configuration configuration,
                   warpsmith::ReadConfiguration(flags.config, flags.assignments));
  if (flags.options.rollout_addresses.empty()) {
    flags.options.rollout_addresses = configuration.trainer.rollout_addresses;
  }
  ASSIGN_OR_RETURN(const warpsmith::ProcessGroupEnvironment environment,
                   warpsmith::ReadProcessGroupEnvironment(warpsmith::LookUpEnvironment));
  flags.options.request.restart_count = environment.restart_count;
  flags.options.request.restarts_max = environment.restarts_max;
  const warpsmith::CommunicatorOptions options{
      .deadline = absl::Seconds(configuration.trainer.collective_timeout_seconds)};
  ASSIGN_OR_RETURN(const std::unique_ptr<warpsmith::TcpCommunicator> communicator,
                   warpsmith::TcpCommunicator::Create(environment, options));
  return warpsmith::RunTraining(configuration, flags.options, *communicator, stop_requested);
}

}  // namespace

int main(int argc, char** argv) {
  using warpsmith::RunMode;
  Flags flags;
  CLI::App app("Warpsmith's trainer");
  app.add_option("--config", flags.config, "configuration of the run")->required()->check(CLI::ExistingFile);
  app.add_option("--set", flags.assignments, "section.key=value, on top of the file")
      ->allow_extra_args(false);
  warpsmith::RunRequest& request = flags.options.request;
  CLI::Option* const resume =
      app.add_flag("--resume", request.resume, "go on from the newest checkpoint of the run's directory");
  app.add_flag("--overwrite", request.overwrite, "remove the run that the directory holds, and start anew")
      ->excludes(resume);
  app.add_flag("--check", flags.options.check, "say whether this command could start; change nothing");
  const std::map<std::string, RunMode> modes = {{"train", RunMode::kTrain},
                                                {"cold_start", RunMode::kColdStart},
                                                {"eval", RunMode::kEvaluate},
                                                {"export", RunMode::kExport}};
  app.add_option("--mode", flags.options.mode, "train, cold_start, eval or export")
      ->transform(CLI::CheckedTransformer(modes));
  app.add_option("--rollout-address", flags.options.rollout_addresses,
                 "of a rollout worker, instead of trainer.rollout_addresses; repeatable")
      ->allow_extra_args(false);
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error");
  CLI11_PARSE(app, argc, argv);

  std::signal(SIGTERM, RequestStop);
  std::signal(SIGINT, RequestStop);
  warpsmith::SetUpLogging("trainer", flags.log_level);
  warpsmith::TouchConstants(warpsmith::kTorchLibrary);
  const absl::Status status = Run(std::move(flags));
  if (status.ok()) return 0;
  warpsmith::LogError(status.ToString());
  return absl::IsCancelled(status) ? kExitStopped : 1;
}
