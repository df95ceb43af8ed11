// warpsmith-train: trains, evaluates and exports a Coder.
//
//   warpsmith-train --config FILE [--set section.key=value]... [--resume | --overwrite]
//                   [--dry-run] [--mode train|cold_start|eval|export] [--rollout-address A]...
//   warpsmith-train --config FILE [--set section.key=value]... --check
//   warpsmith-train --reference
//
// One process of a run; several are started by torchrun --no-python, by `warpsmith up`, or by whatever sets
// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. SIGTERM and SIGINT save a checkpoint at the end of the step,
// or, while waiting for a worker, end with the newest one; exit status 3. Until the ranks have met they kill:
// there is nothing to save.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/touch_constants.h"
#include "core/distributed/control_plane.h"
#include "core/distributed/process_group_environment.h"
#include "core/distributed/tcp_communicator.h"
#include "core/rpc/server_address.h"
#include "trainer/configuration.h"
#include "trainer/phases/policy_start.h"
#include "trainer/phases/training.h"

namespace {

constexpr int kExitStopped = 3;

// Signal handlers reach nothing else.
std::atomic<bool> stop_requested = false;

void RequestStop(int) { stop_requested = true; }

struct Flags {
  std::string config;
  std::vector<std::string> assignments;
  std::string log_level = "info";
  bool check = false;
  bool reference = false;
  warpsmith::TrainingOptions options;
};

absl::Status RunRank(const warpsmith::Configuration& configuration,
                     const warpsmith::TrainingOptions& training,
                     const warpsmith::ProcessGroupEnvironment& environment) {
  const warpsmith::CommunicatorOptions options{
      .deadline = absl::Seconds(configuration.trainer.collective_timeout_seconds)};
  ASSIGN_OR_RETURN(const auto control, warpsmith::ControlPlane::Create(environment));
  const auto communicator = warpsmith::CreateTcpCommunicator(environment, control.get(), options);
  if (!communicator.ok()) {
    control->Leave(communicator.status());
    return communicator.status();
  }
  std::signal(SIGTERM, RequestStop);
  std::signal(SIGINT, RequestStop);
  if (environment.world_size > 1 && environment.rank == 0) {
    warpsmith::LogInfo(absl::StrCat(environment.world_size, " ranks have met"));
  }
  const absl::Status status =
      warpsmith::RunTraining(configuration, training, *control, **communicator, stop_requested);
  control->Leave(status);
  return status;
}

absl::StatusOr<warpsmith::Configuration> ReadFor(const Flags& flags) {
  for (const std::string& address : flags.options.rollout_addresses) {
    const absl::Status valid = warpsmith::CheckClientAddress(address);
    if (!valid.ok()) return absl::InvalidArgumentError(absl::StrCat("--rollout-address: ", valid.message()));
  }
  return warpsmith::ReadConfiguration(flags.config, flags.assignments,
                                      flags.options.mode == warpsmith::RunMode::kExport
                                          ? warpsmith::DataFiles::kNotRead
                                          : warpsmith::DataFiles::kRequired);
}

// Meets the other ranks only to end them with `status`: they would wait for this one until they give up.
void TellOtherRanks(const absl::Status& status) {
  constexpr absl::Duration kPatience = absl::Seconds(20);
  const auto environment = warpsmith::ReadProcessGroupEnvironment(warpsmith::LookUpEnvironment);
  if (!environment.ok() || environment->world_size == 1) return;
  const auto control = warpsmith::ControlPlane::Create(*environment, {.meeting_timeout = kPatience});
  if (control.ok()) (*control)->Leave(status);
}

absl::Status Run(Flags flags, const warpsmith::Configuration& configuration) {
  if (flags.options.rollout_addresses.empty()) {
    flags.options.rollout_addresses = configuration.trainer.rollout_addresses;
  }
  ASSIGN_OR_RETURN(const warpsmith::ProcessGroupEnvironment environment,
                   warpsmith::ReadProcessGroupEnvironment(warpsmith::LookUpEnvironment));
  flags.options.request.restart_count = environment.restart_count;
  flags.options.request.restarts_max = environment.restarts_max;
  return RunRank(configuration, flags.options, environment);
}

// Prints the resolved sections to standard output, and for a GPU the plan of its memory as a comment; or every fault, a
// line each, to standard error.
int Check(const Flags& flags) {
  const absl::StatusOr<std::string> resolved =
      warpsmith::ResolveConfiguration(flags.config, flags.assignments);
  if (!resolved.ok()) {
    std::cerr << resolved.status().message() << std::endl;
    return 1;
  }
  std::cout << *resolved;
  const auto configuration = warpsmith::ReadConfiguration(flags.config, flags.assignments);
  if (configuration.ok() && configuration->trainer.gpu.has_value()) {
    std::cout << "# The trainer is planned to take of GPU " << *configuration->trainer.gpu << ": "
              << warpsmith::DescribeMemory(warpsmith::PlanMemory(*configuration)) << "\n";
  }
  std::cout << std::flush;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using warpsmith::RunMode;
  Flags flags;
  CLI::App app("Warpsmith's trainer");
  app.add_option("--config", flags.config, "configuration of the run")->check(CLI::ExistingFile);
  app.add_option("--set", flags.assignments, "section.key=value, on top of the file")
      ->allow_extra_args(false);
  warpsmith::RunRequest& request = flags.options.request;
  CLI::Option* const resume =
      app.add_flag("--resume", request.resume, "go on from the newest checkpoint of the run's directory");
  app.add_flag("--overwrite", request.overwrite, "remove the run that the directory holds, and start anew")
      ->excludes(resume);
  app.add_flag("--dry-run", flags.options.dry_run, "say whether this run could begin; change nothing");
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
  app.add_flag("--check", flags.check, "print the resolved sections of the trainer, or every fault; no more");
  app.add_flag("--reference", flags.reference, "print every key of these sections with its meaning; no more");
  CLI11_PARSE(app, argc, argv);
  if (flags.reference) {
    std::cout << warpsmith::ConfigurationReference() << std::flush;
    return 0;
  }
  if (flags.config.empty()) return app.exit(CLI::RequiredError("--config"));
  if (flags.check) return Check(flags);

  warpsmith::SetUpLogging("trainer", flags.log_level);
  warpsmith::TouchConstants(warpsmith::kTorchLibrary);
  const absl::StatusOr<warpsmith::Configuration> configuration = ReadFor(flags);
  if (!configuration.ok()) {
    warpsmith::LogError(configuration.status().ToString());
    TellOtherRanks(configuration.status());
    return 1;
  }
  const absl::Status status = Run(std::move(flags), *configuration);
  if (status.ok()) return 0;
  warpsmith::LogError(status.ToString());
  return absl::IsCancelled(status) ? kExitStopped : 1;
}
