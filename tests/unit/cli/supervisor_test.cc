#include "cli/supervisor.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/said_lines.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// A run in a folder of its own. Servers are shell scripts that "serve" once a file named after their address
// exists.
struct Run {
  TemporaryDirectory directory;
  StopSignals signals;

  std::filesystem::path File(const std::string& name) const { return directory.path() / name; }

  Command Shell(const std::string& name, const std::string& script) const {
    const std::string prologue = "cd " + directory.path().string() + "; ";
    return {.name = name, .arguments = {"sh", "-c", prologue + script}, .log_path = File(name + ".log")};
  }

  ServerSpec Server(const std::string& name, const std::string& script) const {
    return {.command = Shell(name, script), .address = name};
  }

  SupervisorOptions Options() {
    return {.restarts_max = 2,
            .ready_timeout = absl::Seconds(10),
            .trainer_grace = absl::Seconds(10),
            .is_serving = [this](const std::string& address, absl::Duration) {
              return std::filesystem::exists(File(address));
            }};
  }

  std::string Log(const std::string& name) const { return ReadFile(File(name + ".log")).value_or(""); }
};

TEST_CASE("A run ends with 0 when its trainer has, and its servers are gone") {
  Run run;
  Supervisor supervisor(run.Options(), &run.signals);
  REQUIRE(supervisor.StartServer(run.Server("worker", "echo $$ > pid; touch worker; exec sleep 60")).ok());
  REQUIRE(supervisor.StartTrainer(run.Shell("trainer", "exit 0")).ok());
  CHECK(supervisor.Run() == 0);
  CHECK(kill(std::stoi(*ReadFile(run.File("pid"))), 0) == -1);
}

TEST_CASE("The trainer's exit status is the run's") {
  Run run;
  Supervisor supervisor(run.Options(), &run.signals);
  REQUIRE(supervisor.StartTrainer(run.Shell("trainer", "exit 5")).ok());
  CHECK(supervisor.Run() == 5);
}

TEST_CASE("One failed trainer of several ends the others") {
  Run run;
  Supervisor supervisor(run.Options(), &run.signals);
  REQUIRE(supervisor.StartTrainer(run.Shell("trainer-0", "exec sleep 60")).ok());
  REQUIRE(supervisor.StartTrainer(run.Shell("trainer-1", "exit 6")).ok());
  CHECK(supervisor.Run() == 6);
}

TEST_CASE("A server that takes its time to serve is waited for in words") {
  Run run;
  SaidLines said;
  SupervisorOptions options = run.Options();
  options.lines = said.Options(absl::Milliseconds(20));
  options.is_serving = [&](const std::string&, absl::Duration) {
    said.Await(2);
    return true;
  };
  Supervisor supervisor(options, &run.signals);
  REQUIRE(supervisor.StartServer(run.Server("worker", "exec sleep 60")).ok());
  CHECK_THAT(said.all().front(), Catch::StartsWith("waiting for worker to serve (") &&
                                     Catch::Contains("worker.log), for ") &&
                                     Catch::EndsWith("of at most 10s"));
}

TEST_CASE("A server that dies before it serves is an error with the end of its log") {
  Run run;
  Supervisor supervisor(run.Options(), &run.signals);
  const absl::Status status = supervisor.StartServer(run.Server("worker", "echo no such model; exit 2"));
  REQUIRE(absl::IsUnavailable(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("exit status 2") && Catch::Contains("no such model"));
}

TEST_CASE("A failure shows this run's lines of a log, not those of the run before") {
  Run run;
  REQUIRE(WriteFileAtomically(run.File("worker.log"), "the disk was full yesterday\n").ok());
  Supervisor supervisor(run.Options(), &run.signals);
  const absl::Status status = supervisor.StartServer(run.Server("worker", "echo no such model; exit 2"));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("no such model") && !Catch::Contains("yesterday"));
  CHECK_THAT(run.Log("worker"), Catch::Contains("yesterday"));  // the file keeps them
}

TEST_CASE("A failure without a line says so, whatever an earlier run wrote") {
  Run run;
  REQUIRE(WriteFileAtomically(run.File("worker.log"), "the disk was full yesterday\n").ok());
  Supervisor supervisor(run.Options(), &run.signals);
  const absl::Status status = supervisor.StartServer(run.Server("worker", "exit 2"));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("has no line of this run") && !Catch::Contains("yesterday"));
}

TEST_CASE("A server that never serves is an error after the time it has") {
  Run run;
  SupervisorOptions options = run.Options();
  options.ready_timeout = absl::Milliseconds(20);
  Supervisor supervisor(options, &run.signals);
  const absl::Status status = supervisor.StartServer(run.Server("worker", "exec sleep 60"));
  REQUIRE(absl::IsUnavailable(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("does not serve at worker"));
}

TEST_CASE("A server that dies while the trainer runs is started again") {
  Run run;
  Supervisor supervisor(run.Options(), &run.signals);
  // Its first life ends once the trainer runs; the second opens the pipe for which the trainer waits.
  const std::string script =
      "touch worker; echo life; if mkdir first; then read x < go; exit 1; fi; echo x > done";
  REQUIRE(mkfifo(run.File("go").c_str(), 0600) == 0);
  REQUIRE(mkfifo(run.File("done").c_str(), 0600) == 0);
  REQUIRE(supervisor.StartServer(run.Server("worker", script + "; exec sleep 60")).ok());
  REQUIRE(supervisor.StartTrainer(run.Shell("trainer", "echo x > go; read x < done; exit 0")).ok());
  CHECK(supervisor.Run() == 0);
  CHECK_THAT(run.Log("worker"), Catch::Contains("life\nmkdir"));
}

TEST_CASE("A server that keeps dying ends the run after its restarts") {
  Run run;
  Supervisor supervisor(run.Options(), &run.signals);
  REQUIRE(WriteFileAtomically(run.File("worker"), "").ok());
  REQUIRE(supervisor.StartServer(run.Server("worker", "echo life; exit 1")).ok());
  REQUIRE(supervisor.StartTrainer(run.Shell("trainer", "exec sleep 60")).ok());
  CHECK(supervisor.Run() == 1);
  CHECK(run.Log("worker") == "life\nlife\nlife\n");
}

TEST_CASE("SIGTERM lets the trainer finish what it does, and is the run's status") {
  Run run;
  Supervisor supervisor(run.Options(), &run.signals);
  REQUIRE(mkfifo(run.File("never").c_str(), 0600) == 0);
  const std::string script = "trap 'echo saved; exit 0' TERM; kill -TERM " + std::to_string(getpid()) +
                             "; while :; do read x <> never; done";
  REQUIRE(supervisor.StartTrainer(run.Shell("trainer", script)).ok());
  CHECK(supervisor.Run() == 128 + SIGTERM);
  CHECK(run.Log("trainer") == "saved\n");
}

TEST_CASE("A trainer that ignores SIGTERM is killed after its grace") {
  Run run;
  SupervisorOptions options = run.Options();
  options.trainer_grace = absl::Milliseconds(20);
  Supervisor supervisor(options, &run.signals);
  const std::string script = "trap '' TERM; kill -TERM " + std::to_string(getpid()) + "; exec sleep 60";
  REQUIRE(supervisor.StartTrainer(run.Shell("trainer", script)).ok());
  CHECK(supervisor.Run() == 128 + SIGTERM);
}

TEST_CASE("The last lines of a log are those of its end, and a missing log has none") {
  const Run run;
  REQUIRE(WriteFileAtomically(run.File("log"), "1\n2\n\n3\n").ok());
  CHECK(LastLines(run.File("log"), 0, 2) == "2\n3");
  CHECK(LastLines(run.File("log"), 0, 9) == "1\n2\n3");
  CHECK(LastLines(run.File("log"), 2, 9) == "2\n3");
  CHECK(LastLines(run.File("log"), 7, 9).empty());
  CHECK(LastLines(run.File("none"), 0, 2).empty());
}

TEST_CASE("The last lines of a log of any length are found without reading all of it") {
  const Run run;
  const std::string old(int64_t{1} << 20, 'x');
  REQUIRE(WriteFileAtomically(run.File("log"), old + "\n1\n2\n").ok());
  CHECK(LastLines(run.File("log"), 0, 2) == "1\n2");
  CHECK(LastLines(run.File("log"), 0, 3).size() < 100'000);
}

}  // namespace
}  // namespace warpsmith
