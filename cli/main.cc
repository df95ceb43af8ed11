// warpsmith: runs, checks configurations, grades, evaluates, exports, serves, and says whether a machine is fit.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/config_check.h"
#include "cli/diagnosis.h"
#include "cli/grade.h"
#include "cli/stop_signals.h"
#include "cli/up.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/config/nearest_name.h"
#include "proto/device_names.h"
#include "proto/language_names.h"

namespace {

using warpsmith::GradeOptions;
using warpsmith::UpOptions;

// Options of every command that reads a run's configuration.
struct RunFlags {
  UpOptions up;
  std::optional<uint64_t> seed;

  // The options with --seed turned into what it stands for.
  UpOptions Complete() const {
    UpOptions complete = up;
    if (seed.has_value()) complete.assignments.push_back(absl::StrCat("run.seed=", *seed));
    return complete;
  }
};

void AddRunFlags(CLI::App* command, RunFlags* flags) {
  command->add_option("config", flags->up.config, "configuration file of the run")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--seed", flags->seed, "seed of the run, instead of the file's");
  command->add_option("--set", flags->up.assignments, "section.key=value, instead of the file's; repeatable")
      ->allow_extra_args(false);
}

CLI::App* AddUp(CLI::App* app, RunFlags* flags) {
  CLI::App* const up =
      app->add_subcommand("up", "run reward service, rollout worker and trainer on this machine");
  AddRunFlags(up, flags);
  CLI::Option* const resume =
      up->add_flag("--resume", flags->up.resume, "continue from the last checkpoint of the run's folder");
  up->add_flag("--overwrite", flags->up.overwrite, "remove the run that the folder holds, and start anew")
      ->excludes(resume);
  return up;
}

CLI::App* AddConfig(CLI::App* app, RunFlags* flags) {
  CLI::App* const config = app->add_subcommand(
      "config", "check all sections and paths of a configuration and print it with every default");
  AddRunFlags(config, flags);
  return config;
}

CLI::App* AddTrainerMode(CLI::App* app, const std::string& name, const std::string& description,
                         RunFlags* flags) {
  CLI::App* const mode = app->add_subcommand(name, description);
  AddRunFlags(mode, flags);
  mode->allow_extras()->footer("Further flags are passed on; see warpsmith-train --help.");
  return mode;
}

CLI::App* AddServe(CLI::App* app, std::string* model) {
  CLI::App* const serve = app->add_subcommand("serve", "answer OpenAI's HTTP API with a checkpoint");
  serve->add_option("--model", *model, "folder of a Hugging Face checkpoint, as export writes it")
      ->required();
  serve->allow_extras()->footer("Further flags are passed on; see warpsmith-rollout serve --help.");
  return serve;
}

CLI::App* AddGrade(CLI::App* app, GradeOptions* options) {
  CLI::App* const grade = app->add_subcommand("grade", "grade one candidate for one task");
  grade
      ->add_option("--task", options->task,
                   "KernelBench file, FILE.jsonl#ID of a task file, or a Task as .json")
      ->required();
  grade->add_option("--candidate", options->candidate, "program, or a whole answer as .md or .txt")
      ->required()
      ->check(CLI::ExistingFile);
  grade->add_option("--language", options->language, warpsmith::AllLanguageNames())
      ->required()
      ->check(CLI::IsMember(warpsmith::LanguageNames()));
  grade->add_option("--device", options->device, warpsmith::AllDeviceNames() + "; else what the task says")
      ->check(CLI::IsMember(warpsmith::DeviceNames()));
  grade->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  grade->add_option("--address", options->address,
                    "host:port or unix:path of a running service; else one is started");
  grade->add_option("--authority", options->channel.tls.authority,
                    "who signs that service's certificate, a PEM file, or 'system'; encrypts");
  grade->add_option("--certificate", options->channel.tls.certificate, "one's own certificate, a PEM file");
  grade->add_option("--key", options->channel.tls.key, "and its key");
  grade->add_option("--token-file", options->channel.token_file, "file with the tenant's token");
  grade->add_option("--formula", options->formula,
                    "reward formula, e.g. stitchcuda-v1; else the service's default");
  return grade;
}

// Where the command is none, the nearest; CLI11 would only say that one is required.
std::optional<CLI::Error> CheckCommand(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return std::nullopt;
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return std::nullopt;
  const std::string shown = warpsmith::Escape(argv[1], 100);
  return CLI::Error("NoSuchCommand",
                    absl::StrCat("\"", shown, "\" is not a command", warpsmith::SuggestName(argv[1], names)),
                    CLI::ExitCodes::ExtrasError);
}

}  // namespace

int main(int argc, char** argv) {
  warpsmith::StopSignals signals;
  warpsmith::SetUpLogging("warpsmith", "info");
  CLI::App app("Trains a Coder: a language model that writes fast programs.");
  app.require_subcommand(1);
  RunFlags run;
  GradeOptions grade;
  const CLI::App* const up_command = AddUp(&app, &run);
  const CLI::App* const config_command = AddConfig(&app, &run);
  const CLI::App* const grade_command = AddGrade(&app, &grade);
  CLI::App* const eval_command =
      AddTrainerMode(&app, "eval", "evaluate a checkpoint on the held-out tasks", &run);
  CLI::App* const export_command =
      AddTrainerMode(&app, "export", "write a checkpoint as a Hugging Face folder", &run);
  std::string served_model;
  const CLI::App* const serve_command = AddServe(&app, &served_model);
  app.add_subcommand("doctor", "say whether this machine can run Warpsmith, and what to do if not");
  if (const auto no_command = CheckCommand(app, argc, argv)) return app.exit(*no_command);
  CLI11_PARSE(app, argc, argv);
  if (up_command->parsed()) return warpsmith::RunUp(run.Complete(), &signals);
  if (config_command->parsed()) {
    const UpOptions options = run.Complete();
    return warpsmith::RunConfigCheck({.binaries = warpsmith::ExecutableDirectory(),
                                      .config = options.config,
                                      .assignments = options.assignments},
                                     &signals);
  }
  if (grade_command->parsed()) return warpsmith::RunGrade(grade, &signals);
  if (eval_command->parsed()) {
    run.up.trainer_flags = {"--mode", "eval"};
    for (const std::string& flag : eval_command->remaining()) run.up.trainer_flags.push_back(flag);
    return warpsmith::RunUp(run.Complete(), &signals);
  }
  if (export_command->parsed()) {
    run.up.trainer_flags = export_command->remaining();
    return warpsmith::RunTrainerMode(run.Complete(), "export", &signals);
  }
  if (serve_command->parsed()) {
    std::vector<std::string> flags = {"--model", served_model};
    for (const std::string& flag : serve_command->remaining()) flags.push_back(flag);
    return warpsmith::RunServe(flags, &signals);
  }
  return warpsmith::RunDoctor();
}
