// `warpsmith up` and the commands that are like it: a whole run on this machine.
#ifndef WARPSMITH_CLI_UP_H_
#define WARPSMITH_CLI_UP_H_

#include <filesystem>
#include <string>
#include <vector>

#include "cli/stop_signals.h"

namespace warpsmith {

struct UpOptions {
  std::filesystem::path config;
  std::vector<std::string> assignments;    // "section.key=value"
  std::vector<std::string> trainer_flags;  // passed on to the trainers as they are
  bool resume = false;
  bool overwrite = false;  // remove what an older run left in the folder, but its logs
};

// Has the trainer check configuration and folder, then starts the reward service, a rollout worker
// and the trainers, in this order and each when the one before serves; returns the trainers' exit
// status as of Supervisor::Run, or 1 when the run could not start. Makes this process the reaper of
// all that its children leave behind.
int RunUp(const UpOptions& options, StopSignals* signals);

// The trainer alone in one of its modes that needs no server, its output ours. Returns its exit status.
int RunTrainerMode(const UpOptions& options, const std::string& mode, StopSignals* signals);

// Serves a checkpoint by OpenAI's API, with these flags of `warpsmith-rollout serve`, until a signal ends it;
// its output is ours. Returns its exit status, or 128 + the signal's number.
int RunServe(const std::vector<std::string>& flags, StopSignals* signals);

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_UP_H_
