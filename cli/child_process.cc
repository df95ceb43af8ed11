#include "cli/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Everything the child needs between fork and exec, made before the fork: after it only system calls are
// safe.
struct LaunchPlan {
  std::vector<std::string> environment_text;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int log_fd = -1;    // -1: keep ours
  int error_fd = -1;  // where the child writes errno when exec fails
};

LaunchPlan Plan(const Command& command) {
  LaunchPlan plan;
  for (const std::string& argument : command.arguments)
    plan.arguments.push_back(const_cast<char*>(argument.c_str()));
  plan.arguments.push_back(nullptr);
  for (const auto& [name, value] : command.environment)
    plan.environment_text.push_back(absl::StrCat(name, "=", value));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : command.environment) replaced |= text.rfind(name + "=", 0) == 0;
    if (!replaced) plan.environment_text.emplace_back(text);
  }
  for (std::string& text : plan.environment_text) plan.environment.push_back(text.data());
  plan.environment.push_back(nullptr);
  return plan;
}

[[noreturn]] void RunChild(const LaunchPlan& plan, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before the line above
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null_fd = open("/dev/null", O_RDONLY);
  if (null_fd >= 0) dup2(null_fd, STDIN_FILENO);
  if (plan.log_fd >= 0) {
    dup2(plan.log_fd, STDERR_FILENO);
    dup2(plan.log_fd, STDOUT_FILENO);
  }
  execvpe(plan.arguments[0], plan.arguments.data(), plan.environment.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(plan.error_fd, &error, sizeof(error));
  _exit(127);
}

absl::StatusOr<UniqueFd> OpenLog(const std::filesystem::path& path) {
  if (path.empty()) return UniqueFd();
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoStatus("cannot open the log", path.string());
  return fd;
}

// The errno of a failed exec, or 0 when the program runs.
int ReadExecError(int fd) {
  int error = 0;
  ssize_t size;
  do {
    size = read(fd, &error, sizeof(error));
  } while (size < 0 && errno == EINTR);
  return size == sizeof(error) ? error : 0;
}

int StatusOfWait(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace

LaunchedProcess::LaunchedProcess(std::string name, pid_t pid, UniqueFd pidfd)
    : name_(std::move(name)), pid_(pid), pidfd_(std::move(pidfd)) {}

absl::StatusOr<LaunchedProcess> LaunchedProcess::Start(const Command& command) {
  if (command.arguments.empty()) return absl::InvalidArgumentError("a command without a program");
  ASSIGN_OR_RETURN(const UniqueFd log, OpenLog(command.log_path));
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return ErrnoStatus("cannot make a pipe for", command.name);
  UniqueFd reader(pipe_fds[0]), writer(pipe_fds[1]);
  LaunchPlan plan = Plan(command);
  plan.log_fd = log.get();
  plan.error_fd = writer.get();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus("cannot start", command.arguments[0]);
  if (pid == 0) RunChild(plan, parent);
  setpgid(pid, pid);  // here as well: whichever of us is first
  LaunchedProcess child(command.name, pid, UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))));
  writer.Reset();
  if (const int error = ReadExecError(reader.get()); error != 0) {
    errno = error;
    return ErrnoStatus("cannot run", command.arguments[0]);
  }
  if (!child.pidfd_.valid()) return ErrnoStatus("cannot watch", command.name);
  return child;
}

LaunchedProcess::LaunchedProcess(LaunchedProcess&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      status_(other.status_) {}

LaunchedProcess& LaunchedProcess::operator=(LaunchedProcess&& other) noexcept {
  if (this == &other) return *this;
  KillGroup();
  name_ = std::move(other.name_);
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  status_ = other.status_;
  return *this;
}

LaunchedProcess::~LaunchedProcess() { KillGroup(); }

std::optional<int> LaunchedProcess::AwaitEnd(absl::Duration timeout) {
  if (status_.has_value()) return status_;
  pollfd ended = {pidfd_.get(), POLLIN, 0};
  poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  int wait_status = 0;
  if (waitpid(pid_, &wait_status, WNOHANG) == pid_) status_ = StatusOfWait(wait_status);
  return status_;
}

void LaunchedProcess::Signal(int signal) {
  if (!status_.has_value()) kill(pid_, signal);
}

int LaunchedProcess::Stop(absl::Duration grace) {
  Signal(SIGTERM);
  AwaitEnd(grace);
  KillGroup();
  return *status_;
}

void LaunchedProcess::KillGroup() {
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);  // whoever is left of the group, also after its leader's end
  int wait_status = 0;
  if (!status_.has_value() && waitpid(pid_, &wait_status, 0) == pid_) status_ = StatusOfWait(wait_status);
  if (!status_.has_value()) status_ = 127;
}

std::string DescribeExitStatus(int status) {
  if (status <= 128) return absl::StrCat("exit status ", status);
  return absl::StrCat("signal ", status - 128, " (", strsignal(status - 128), ")");
}

void ReapOrphans() {
  constexpr int kOrphansMax = 1000;
  const std::string path = absl::StrCat("/proc/self/task/", getpid(), "/children");
  for (int round = 0; round < kOrphansMax; ++round) {
    const absl::StatusOr<std::string> children = ReadFile(path, 1 << 20);
    if (!children.ok() || children->empty()) return;
    const pid_t pid = static_cast<pid_t>(std::strtol(children->c_str(), nullptr, 10));
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

}  // namespace warpsmith
