#include "tests/support/server_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/unique_fd.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(30);
constexpr char kMark[] = "listening on ";

std::string PathOf(const std::string& program) {
  const char* folder = std::getenv("WARPSMITH_BIN_DIR");
  WS_CHECK(folder != nullptr) << "set WARPSMITH_BIN_DIR to the build's bin folder, as CTest does";
  return std::string(folder) + "/" + program;
}

pid_t Spawn(const std::string& path, const std::vector<std::string>& arguments, int stdout_fd) {
  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, stdout_fd, STDOUT_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, path.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  WS_CHECK(error == 0) << "cannot start " << path << ": errno " << error;
  return pid;
}

}  // namespace

ServerProcess::ServerProcess(const std::string& program, const std::vector<std::string>& arguments) {
  int pipe_fds[2];
  WS_CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
  UniqueFd reader(pipe_fds[0]), writer(pipe_fds[1]);
  pid_ = Spawn(PathOf(program), arguments, writer.get());
  pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  writer.Reset();
  AwaitAddress(reader.get());
}

void ServerProcess::AwaitAddress(int fd) {
  const absl::Time deadline = absl::Now() + kStartTimeout;
  std::string output;
  while (absl::Now() < deadline) {
    pollfd ready = {fd, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(deadline - absl::Now()))) <= 0) return;
    char buffer[512];
    const ssize_t num_read = read(fd, buffer, sizeof(buffer));
    if (num_read <= 0) return;
    output.append(buffer, static_cast<size_t>(num_read));
    const size_t begin = output.find(kMark);
    const size_t end = begin == std::string::npos ? begin : output.find('\n', begin);
    if (end == std::string::npos) continue;
    const size_t name = begin + sizeof(kMark) - 1;
    address_ = output.substr(name, end - name);
    return;
  }
}

int ServerProcess::Stop(int signal, absl::Duration timeout) {
  if (pid_ < 0) return -1;
  kill(pid_, signal);
  pollfd ended = {pidfd_, POLLIN, 0};
  if (poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) <= 0) return -1;
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ServerProcess::~ServerProcess() {
  if (pid_ >= 0) Stop(SIGKILL, absl::Seconds(10));
  if (pidfd_ >= 0) close(pidfd_);
}

}  // namespace warpsmith
