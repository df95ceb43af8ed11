// One child process of `warpsmith`, with everything that it starts in turn.
#ifndef WARPSMITH_CLI_CHILD_PROCESS_H_
#define WARPSMITH_CLI_CHILD_PROCESS_H_

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

struct Command {
  std::string name;                    // in messages: "rollout_worker"
  std::vector<std::string> arguments;  // program first: a path, or a name looked up on PATH
  std::vector<std::pair<std::string, std::string>> environment;  // on top of ours
  std::filesystem::path log_path;  // what it prints is appended; empty: it prints to our terminal
};

// Owns a process group that the child leads. The child gets SIGKILL when the thread that started it ends, so
// that it does not survive us. Not thread-safe; movable.
class LaunchedProcess {
 public:
  // Starts `command` with no signal blocked and standard input empty. NOT_FOUND: no such program; or the
  // error of opening the log or of starting.
  static absl::StatusOr<LaunchedProcess> Start(const Command& command);

  LaunchedProcess(LaunchedProcess&& other) noexcept;
  LaunchedProcess& operator=(LaunchedProcess&& other) noexcept;
  ~LaunchedProcess();  // kills what is left of the group

  pid_t pid() const { return pid_; }
  const std::string& name() const { return name_; }

  // Becomes readable for poll() when the child has ended.
  int end_fd() const { return pidfd_.get(); }

  // Waits at most `timeout` for the end. The exit status, 128 + the number of the signal that ended it, or
  // nothing.
  std::optional<int> AwaitEnd(absl::Duration timeout);

  // To the child alone; nothing happens if it has ended.
  void Signal(int signal);

  // SIGTERM, at most `grace`, SIGKILL to the whole group. As AwaitEnd.
  int Stop(absl::Duration grace);

 private:
  LaunchedProcess(std::string name, pid_t pid, UniqueFd pidfd);

  void KillGroup();

  std::string name_;
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::optional<int> status_;  // once reaped
};

// "exit status 1", "signal 9 (Killed)" for a status of LaunchedProcess.
std::string DescribeExitStatus(int status);

// Kills and reaps processes that have become children of this one because their own parent died. Needs
// PR_SET_CHILD_SUBREAPER on this process; bounded to a thousand.
void ReapOrphans();

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_CHILD_PROCESS_H_
