#include "cli/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

Command Shell(const std::string& script, const std::filesystem::path& log_path = {}) {
  return {.name = "shell", .arguments = {"sh", "-c", script}, .log_path = log_path};
}

TEST_CASE("A child's exit status is reported, and again when asked again") {
  absl::StatusOr<LaunchedProcess> child = LaunchedProcess::Start(Shell("exit 3"));
  REQUIRE(child.ok());
  CHECK(child->AwaitEnd(absl::Seconds(10)) == 3);
  CHECK(child->AwaitEnd(absl::ZeroDuration()) == 3);
}

TEST_CASE("A child that runs has no status, and is killed with its name at destruction") {
  absl::StatusOr<LaunchedProcess> child = LaunchedProcess::Start(Shell("exec sleep 60"));
  REQUIRE(child.ok());
  CHECK_FALSE(child->AwaitEnd(absl::Milliseconds(1)).has_value());
  const pid_t pid = child->pid();
  { LaunchedProcess owner = *std::move(child); }
  CHECK(kill(pid, 0) == -1);
}

TEST_CASE("A child that ends by a signal has 128 and its number") {
  absl::StatusOr<LaunchedProcess> child = LaunchedProcess::Start(Shell("kill -9 $$"));
  REQUIRE(child.ok());
  CHECK(child->AwaitEnd(absl::Seconds(10)) == 128 + SIGKILL);
  CHECK(DescribeExitStatus(128 + SIGKILL) == "signal 9 (Killed)");
  CHECK(DescribeExitStatus(3) == "exit status 3");
}

TEST_CASE("A program that does not exist is an error that names it") {
  const absl::StatusOr<LaunchedProcess> child =
      LaunchedProcess::Start({.name = "x", .arguments = {"/nonexistent/program"}});
  REQUIRE(absl::IsNotFound(child.status()));
  CHECK_THAT(std::string(child.status().message()), Catch::Contains("/nonexistent/program"));
}

TEST_CASE("Output and errors go to the log, behind what it holds; variables are added to ours") {
  const TemporaryDirectory directory;
  const std::filesystem::path log = directory.path() / "log";
  REQUIRE(WriteFileAtomically(log, "before\n").ok());
  Command command = Shell("echo out $COLOUR; echo err >&2; cat", log);
  command.environment = {{"COLOUR", "green"}};
  absl::StatusOr<LaunchedProcess> child = LaunchedProcess::Start(command);
  REQUIRE(child.ok());
  CHECK(child->AwaitEnd(absl::Seconds(10)) == 0);
  CHECK(*ReadFile(log) == "before\nout green\nerr\n");
}

TEST_CASE("Stop asks first, and a child that obeys ends with its own status") {
  const TemporaryDirectory directory;
  const std::filesystem::path ready = directory.path() / "ready";
  absl::StatusOr<LaunchedProcess> child = LaunchedProcess::Start(Shell(
      "trap 'exit 7' TERM; mkfifo " + ready.string() + "; while :; do read x <>" + ready.string() + "; done",
      directory.path() / "log"));
  REQUIRE(child.ok());
  while (!std::filesystem::exists(ready)) CHECK_FALSE(child->AwaitEnd(absl::Milliseconds(5)).has_value());
  CHECK(child->Stop(absl::Seconds(10)) == 7);
}

TEST_CASE("Stop kills a child that ignores it, with its group") {
  const TemporaryDirectory directory;
  const std::filesystem::path pid_path = directory.path() / "pid";
  absl::StatusOr<LaunchedProcess> child =
      LaunchedProcess::Start(Shell("trap '' TERM; sleep 60 & echo $! > " + pid_path.string() + ".new; mv " +
                                   pid_path.string() + ".new " + pid_path.string() + "; wait; wait"));
  REQUIRE(child.ok());
  while (!std::filesystem::exists(pid_path)) CHECK_FALSE(child->AwaitEnd(absl::Milliseconds(5)).has_value());
  const pid_t grandchild = std::stoi(*ReadFile(pid_path));
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  CHECK(child->Stop(absl::Milliseconds(20)) == 128 + SIGKILL);
  ReapOrphans();
  CHECK(kill(grandchild, 0) == -1);
}

TEST_CASE("Signals that we block are not blocked in the child") {
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  absl::StatusOr<LaunchedProcess> child = LaunchedProcess::Start(Shell("exec sleep 60"));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  REQUIRE(child.ok());
  CHECK(child->Stop(absl::Seconds(10)) == 128 + SIGTERM);
}

}  // namespace
}  // namespace warpsmith
