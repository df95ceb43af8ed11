// The command lines of a run's processes: the one place that knows their programs and flags.
#ifndef WARPSMITH_CLI_PROCESS_COMMANDS_H_
#define WARPSMITH_CLI_PROCESS_COMMANDS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "cli/child_process.h"
#include "cli/supervisor.h"

namespace warpsmith {

// What `warpsmith up` was asked for, with all that had to be looked up.
struct RunLayout {
  std::filesystem::path binaries;          // folder of our programs
  std::filesystem::path config;            // the run's configuration file
  std::vector<std::string> assignments;    // "section.key=value", passed to every process
  std::vector<std::string> trainer_flags;  // passed to the trainers as they are
  std::filesystem::path run_directory;     // results; its folder logs/ gets what processes print
  std::filesystem::path
      socket_directory;    // private to this run; short, for a socket's path has at most 107 bytes
  bool resume = false;     // continue from the last checkpoint
  bool overwrite = false;  // remove the run that the folder holds
  int num_trainers = 1;
  int rendezvous_port = 0;  // free on 127.0.0.1; used with several trainers
};

ServerSpec RewardServer(const RunLayout& layout);

ServerSpec RolloutServer(const RunLayout& layout);

// Rank 0 keeps our terminal, for its progress; the others have logs. Several ranks get the variables that
// torchrun would set.
std::vector<Command> TrainerCommands(const RunLayout& layout);

// A trainer that says whether those of TrainerCommands could start, and ends; it calls no server.
Command TrainerDryRun(const RunLayout& layout);

// The trainer alone in a mode that calls no server, such as "export"; its output is ours.
Command TrainerMode(const RunLayout& layout, const std::string& mode);

// The rollout worker's program as a server of OpenAI's API, with these flags of `serve`; its output is ours.
Command ServeCommand(const std::filesystem::path& binaries, const std::vector<std::string>& flags);

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_PROCESS_COMMANDS_H_
