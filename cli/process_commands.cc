#include "cli/process_commands.h"

#include "absl/strings/str_cat.h"

namespace warpsmith {
namespace {

void Append(const std::vector<std::string>& more, std::vector<std::string>* arguments) {
  arguments->insert(arguments->end(), more.begin(), more.end());
}

std::string SocketAddress(const RunLayout& layout, const std::string& name) {
  return absl::StrCat("unix:", (layout.socket_directory / (name + ".sock")).string());
}

std::filesystem::path LogPath(const RunLayout& layout, const std::string& name) {
  return layout.run_directory / "logs" / (name + ".log");
}

// PROGRAM --config FILE [--set KEY=VALUE]...: how every process of ours begins.
std::vector<std::string> CommonArguments(const RunLayout& layout, const std::string& program) {
  std::vector<std::string> arguments = {(layout.binaries / program).string(), "--config",
                                        layout.config.string()};
  for (const std::string& assignment : layout.assignments) Append({"--set", assignment}, &arguments);
  return arguments;
}

ServerSpec Server(const RunLayout& layout, const std::string& name, const std::string& program,
                  const std::vector<std::string>& flags) {
  ServerSpec spec{.address = SocketAddress(layout, name)};
  spec.command = {
      .name = name, .arguments = CommonArguments(layout, program), .log_path = LogPath(layout, name)};
  Append({"--address", spec.address}, &spec.command.arguments);
  Append(flags, &spec.command.arguments);
  return spec;
}

// How a run is to begin: the same for its trainers and for the check before them.
std::vector<std::string> StartFlags(const RunLayout& layout) {
  std::vector<std::string> flags;
  if (layout.resume) Append({"--resume"}, &flags);
  if (layout.overwrite) Append({"--overwrite"}, &flags);
  Append(layout.trainer_flags, &flags);
  return flags;
}

std::vector<std::pair<std::string, std::string>> RankVariables(const RunLayout& layout, int rank) {
  if (layout.num_trainers == 1) return {};
  const std::string size = absl::StrCat(layout.num_trainers);
  return {{"RANK", absl::StrCat(rank)}, {"LOCAL_RANK", absl::StrCat(rank)},
          {"WORLD_SIZE", size},         {"LOCAL_WORLD_SIZE", size},
          {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", absl::StrCat(layout.rendezvous_port)}};
}

}  // namespace

ServerSpec RewardServer(const RunLayout& layout) {
  return Server(layout, "reward_service", "warpsmith-reward", {});
}

ServerSpec RolloutServer(const RunLayout& layout) {
  return Server(layout, "rollout_worker", "warpsmith-rollout",
                {"--reward-address", SocketAddress(layout, "reward_service")});
}

std::vector<Command> TrainerCommands(const RunLayout& layout) {
  std::vector<Command> commands;
  for (int rank = 0; rank < layout.num_trainers; ++rank) {
    const std::string name = absl::StrCat("trainer-", rank);
    Command command{.name = name,
                    .arguments = CommonArguments(layout, "warpsmith-train"),
                    .environment = RankVariables(layout, rank)};
    if (rank > 0) command.log_path = LogPath(layout, name);
    Append({"--rollout-address", SocketAddress(layout, "rollout_worker")}, &command.arguments);
    Append(StartFlags(layout), &command.arguments);
    commands.push_back(std::move(command));
  }
  return commands;
}

Command TrainerDryRun(const RunLayout& layout) {
  Command command{.name = "dry run", .arguments = CommonArguments(layout, "warpsmith-train")};
  Append(StartFlags(layout), &command.arguments);
  Append({"--dry-run"}, &command.arguments);
  return command;
}

Command TrainerMode(const RunLayout& layout, const std::string& mode) {
  Command command{.name = mode, .arguments = CommonArguments(layout, "warpsmith-train")};
  Append({"--mode", mode}, &command.arguments);
  Append(layout.trainer_flags, &command.arguments);
  return command;
}

Command ServeCommand(const std::filesystem::path& binaries, const std::vector<std::string>& flags) {
  Command command{.name = "serve", .arguments = {(binaries / "warpsmith-rollout").string(), "serve"}};
  Append(flags, &command.arguments);
  return command;
}

}  // namespace warpsmith
