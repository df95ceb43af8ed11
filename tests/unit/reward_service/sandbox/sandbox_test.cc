#include "reward_service/sandbox/sandbox.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

struct Finished {
  int exit_code = -1;
  std::string output;
};

// Runs a shell command confined; output by a pipe, as the compiler pool does it.
Finished RunShell(const std::string& script, SandboxOptions options = {}) {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  options.arguments = {"/bin/bash", "-c", script};
  options.environment = {"PATH=/usr/bin"};
  options.descriptors = {{writer.get(), 1}, {writer.get(), 2}};
  auto process = SpawnSandboxed(options);
  REQUIRE(process.ok());
  writer.Reset();
  Finished finished;
  char buffer[4096];
  for (ssize_t n; (n = read(reader.get(), buffer, sizeof(buffer))) > 0;) {
    if (finished.output.size() < 100000) finished.output.append(buffer, static_cast<size_t>(n));
  }
  const auto status = process->Wait(30);
  REQUIRE(status.ok());
  finished.exit_code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
  return finished;
}

TEST_CASE("this machine can confine a process") {
  const absl::Status status = CheckSandbox();
  INFO(status.ToString());
  REQUIRE(status.ok());
}

TEST_CASE("the exit code of a confined program comes back") { CHECK(RunShell("exit 7").exit_code == 7); }

TEST_CASE("a confined program leaves no process for others to reap") {
  // Orphans come to us, as they come to whoever supervises a service.
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  CHECK(RunShell("exit 7").exit_code == 7);
  usleep(100000);  // an orphan arrives when its parent ends, which need not be before we hear of it
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

// Whether every process that came to this one, as to the reaper of orphans, has ended within two seconds.
bool NobodyIsLeft() {
  for (int i = 0; i < 200; ++i) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD) return true;
    usleep(10000);
  }
  return false;
}

TEST_CASE("a confined process that is ended while it starts leaves nobody waiting") {
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  for (int i = 0; i < 100; ++i) {
    SandboxOptions options;
    options.arguments = {"/bin/sleep", "1000"};
    const auto process = SpawnSandboxed(options);
    REQUIRE(process.ok());
    usleep(static_cast<useconds_t>(100 * i));
  }
  CHECK(NobodyIsLeft());
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("a confined program sees neither accounts nor homes nor other processes") {
  CHECK(RunShell("cat /etc/passwd").exit_code != 0);
  CHECK(RunShell("ls /root /home /work /proc/1").exit_code != 0);
  CHECK(RunShell("echo $$").output.size() <= 3);
}

TEST_CASE("a confined program writes to its own /tmp and nowhere else") {
  CHECK(RunShell("echo x > /tmp/file && cat /tmp/file").output == "x\n");
  CHECK(RunShell("echo x > /usr/file").exit_code != 0);
  CHECK(RunShell("echo x > /file").exit_code != 0);
  CHECK(RunShell("test -e /tmp/file").exit_code != 0);
}

TEST_CASE("a confined program has no root rights") {
  if (geteuid() == 0) CHECK(RunShell("id -u").output == "64000\n");
  CHECK(RunShell("mount -t tmpfs none /tmp").exit_code != 0);
  CHECK(RunShell("unshare -r true").exit_code != 0);
}

TEST_CASE("a confined program opens no socket") {
  CHECK(RunShell("exec 3<>/dev/tcp/127.0.0.1/80").exit_code != 0);
}

TEST_CASE("filling the disk ends at the limit of the private tmpfs") {
  SandboxOptions options;
  options.tmp_bytes_max = 1 << 20;
  const Finished finished = RunShell("head -c 8000000 /dev/zero > /tmp/fill; stat -c %s /tmp/fill", options);
  CHECK(finished.output.find("No space left") != std::string::npos);
}

TEST_CASE("a file ends at the limit of one file") {
  SandboxOptions options;
  options.file_bytes_max = 100000;
  CHECK(RunShell("head -c 8000000 /dev/zero > /tmp/fill; test $(stat -c %s /tmp/fill) -le 100000", options)
            .exit_code == 0);
}

TEST_CASE("memory ends at its limit") {
  SandboxOptions options;
  options.memory_bytes_max = 64 << 20;
  CHECK(
      RunShell("head -c 200000000 /dev/zero | tail -c 150000000 | wc -c", options).output.find("150000000") ==
      std::string::npos);
}

TEST_CASE("a loop ends at the limit of CPU seconds") {
  SandboxOptions options;
  options.cpu_seconds_max = 1;
  CHECK(RunShell("while :; do :; done", options).exit_code != 0);
}

TEST_CASE("a fork bomb ends at the limit of processes") {
  SandboxOptions options;
  options.num_processes_max = 20;
  const Finished finished = RunShell("for i in $(seq 100); do sleep 1 & done 2>&1; wait", options);
  CHECK(finished.output.find("fork") != std::string::npos);
}

TEST_CASE("descriptors arrive under the numbers asked for, even when they cross") {
  const TemporaryDirectory directory;
  REQUIRE(WriteFileAtomically(directory.path() / "a", "first").ok());
  REQUIRE(WriteFileAtomically(directory.path() / "b", "second").ok());
  const UniqueFd a(open((directory.path() / "a").c_str(), O_RDONLY));
  const UniqueFd b(open((directory.path() / "b").c_str(), O_RDONLY));
  const UniqueFd out(open((directory.path() / "out").c_str(), O_WRONLY | O_CREAT, 0666));
  SandboxOptions options;
  options.arguments = {"/bin/bash", "-c", "cat <&$A; cat <&$B"};
  options.environment = {"PATH=/usr/bin", "A=" + std::to_string(b.get()), "B=" + std::to_string(a.get())};
  options.descriptors = {{a.get(), b.get()}, {b.get(), a.get()}, {out.get(), 1}};
  auto process = SpawnSandboxed(options);
  REQUIRE(process.ok());
  REQUIRE(process->Wait(10).ok());
  CHECK(*ReadFile(directory.path() / "out") == "firstsecond");
}

TEST_CASE("waiting past the deadline is an error and killing ends everything inside") {
  SandboxOptions options;
  options.arguments = {"/bin/bash", "-c", "sleep 100 & sleep 100"};
  auto process = SpawnSandboxed(options);
  REQUIRE(process.ok());
  CHECK(process->Wait(0.05).status().code() == absl::StatusCode::kDeadlineExceeded);
  process->Kill();
  CHECK(process->pid() == -1);
}

}  // namespace
}  // namespace warpsmith
