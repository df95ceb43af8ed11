// `warpsmith up` over real processes: servers are the hash grader under their names, the trainer is a script.
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cli/child_process.h"
#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

// Serves health checks at the address after --address, and notes its life in a file named after it. Has
// nothing to say of a configuration.
constexpr char kServerScript[] = R"(#!/bin/sh
[ "$1" != --check ] || exit 0
echo "$$" >> "$RUN/$(basename "$0").lives"
while [ "$1" != --address ]; do shift; done
exec "$GRADER" --address "$2"
)";

// The trainer's part of what all resolve: the folder of the run, and whatever else the file says. Asked
// whether the run could begin it says so; the rest of its script is the test's.
constexpr char kTrainerCheck[] = R"(#!/bin/sh
if [ "$1" = --check ]; then
  [ ! -e "$RUN/fault" ] || { cat "$RUN/fault" >&2; exit 1; }
  printf 'run: {directory: %s, name: resolved}\n' "$RUN"
  grep -v '^run' "$3"
  exit 0
fi
cd "$RUN"
case " $* " in
  *" --dry-run "*) echo "$@" > dry_run; exit ${DRY_RUN_STATUS:-0} ;;
esac
)";

// A folder with `warpsmith` and stand-ins for the programs that it starts, and a run beside them.
class Stage {
 public:
  explicit Stage(const std::string& trainer_script, const std::string& config = "run: {}\n") {
    const std::filesystem::path bin = std::getenv("WARPSMITH_BIN_DIR");
    std::filesystem::copy_file(bin / "warpsmith", File("warpsmith"));
    for (const char* server : {"warpsmith-reward", "warpsmith-rollout"}) WriteProgram(server, kServerScript);
    WriteProgram("warpsmith-train", absl::StrCat(kTrainerCheck, trainer_script));
    REQUIRE(WriteFileAtomically(File("config.yaml"), config).ok());
    grader_ = (bin / "warpsmith-hash-grader").string();
  }

  std::filesystem::path File(const std::string& name) const { return directory_.path() / name; }
  std::string Text(const std::string& name) const { return ReadFile(File(name)).value_or(""); }

  LaunchedProcess Up(const std::vector<std::string>& flags = {}) const {
    Command command{.name = "warpsmith",
                    .arguments = {File("warpsmith").string(), "up", File("config.yaml").string(), "--set",
                                  absl::StrCat("run.directory=", directory_.path().string())},
                    .environment = {{"RUN", directory_.path().string()}, {"GRADER", grader_}},
                    .log_path = File("up.log")};
    command.arguments.insert(command.arguments.end(), flags.begin(), flags.end());
    absl::StatusOr<LaunchedProcess> child = LaunchedProcess::Start(command);
    REQUIRE(child.ok());
    return *std::move(child);
  }

  // Waits until a file has a line, as the sign that somebody got that far.
  void AwaitFile(const std::string& name, LaunchedProcess* up) const {
    const absl::Time deadline = absl::Now() + kPatience;
    while (Text(name).empty() && absl::Now() < deadline) {
      INFO(Text("up.log"));
      REQUIRE_FALSE(up->AwaitEnd(absl::Milliseconds(10)).has_value());
    }
    REQUIRE_FALSE(Text(name).empty());
  }

  // Process ids of all lives of both servers.
  std::vector<pid_t> ServerLives() const {
    std::vector<pid_t> lives;
    for (const char* name : {"warpsmith-reward.lives", "warpsmith-rollout.lives"}) {
      for (const std::string& line :
           std::vector<std::string>(absl::StrSplit(Text(name), '\n', absl::SkipEmpty()))) {
        lives.push_back(std::stoi(line));
      }
    }
    return lives;
  }

 private:
  void WriteProgram(const std::string& name, const std::string& text) const {
    REQUIRE(WriteFileAtomically(File(name), text).ok());
    REQUIRE(chmod(File(name).c_str(), 0700) == 0);
  }

  TemporaryDirectory directory_;
  std::string grader_;
};

bool IsAlive(pid_t pid) { return kill(pid, 0) == 0; }

// Whether all have ended within our patience.
bool AllGone(const std::vector<pid_t>& pids) {
  const absl::Time deadline = absl::Now() + kPatience;
  for (const pid_t pid : pids) {
    while (IsAlive(pid)) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(5));
    }
  }
  return true;
}

TEST_CASE("The trainer starts when both servers serve, its status is the run's, and nothing is left") {
  const Stage stage("cat *.lives > seen; echo \"$@\" > flags; cp \"$2\" stored; exit 7");
  LaunchedProcess up = stage.Up({"--seed", "5", "--resume"});
  CHECK(up.AwaitEnd(kPatience) == 7);
  INFO(stage.Text("up.log"));
  CHECK(std::vector<std::string>(absl::StrSplit(stage.Text("seen"), '\n', absl::SkipEmpty())).size() == 2);
  CHECK_THAT(stage.Text("flags"), Catch::Contains("--set run.seed=5") && Catch::Contains("--resume"));
  CHECK_THAT(stage.Text("stored"), Catch::Contains("name: resolved"));  // what all programs agreed on
  CHECK(AllGone(stage.ServerLives()));
  CHECK_THAT(stage.Text("logs/reward_service.log"), Catch::Contains("listening on unix:"));
}

TEST_CASE("A run that its trainer would refuse is refused before any server starts") {
  const Stage stage("echo started > started");
  setenv("DRY_RUN_STATUS", "1", 1);
  LaunchedProcess up = stage.Up({"--resume"});
  unsetenv("DRY_RUN_STATUS");
  CHECK(up.AwaitEnd(kPatience) == 1);
  CHECK_THAT(stage.Text("dry_run"), Catch::Contains("--resume --dry-run"));
  CHECK(stage.Text("started").empty());
  CHECK(stage.ServerLives().empty());
  CHECK_FALSE(std::filesystem::exists(stage.File("logs")));
}

TEST_CASE("Overwriting leaves the logs of the run before") {
  const Stage stage("echo \"$@\" > flags");
  std::filesystem::create_directory(stage.File("logs"));
  REQUIRE(WriteFileAtomically(stage.File("logs/trainer-7.log"), "old").ok());
  CHECK(stage.Up({"--overwrite"}).AwaitEnd(kPatience) == 0);
  CHECK(std::filesystem::exists(stage.File("logs/trainer-7.log")));
  CHECK_THAT(stage.Text("flags"), Catch::Contains("--overwrite"));
}

TEST_CASE("Resuming and overwriting contradict each other") {
  const Stage stage("echo started > started");
  CHECK(stage.Up({"--resume", "--overwrite"}).AwaitEnd(kPatience) != 0);
  CHECK(stage.Text("dry_run").empty());
}

TEST_CASE("A fault of the configuration ends the run before anything starts") {
  const Stage stage("exit 0");
  REQUIRE(WriteFileAtomically(stage.File("fault"), "config.yaml:3:2: data.train: there is no file x\n").ok());
  LaunchedProcess up = stage.Up();
  CHECK(up.AwaitEnd(kPatience) == 1);
  CHECK_THAT(stage.Text("up.log"), Catch::Contains("config.yaml:3:2: data.train: there is no file x"));
  CHECK(stage.ServerLives().empty());
  CHECK_FALSE(std::filesystem::exists(stage.File("logs")));
}

TEST_CASE("A server that is killed is started again at its address while the trainer works on") {
  const Stage stage("echo x > started; mkfifo never; read x <> never");
  LaunchedProcess up = stage.Up();
  stage.AwaitFile("started", &up);
  const std::vector<pid_t> before = stage.ServerLives();
  REQUIRE(before.size() == 2);
  for (const pid_t pid : before) kill(pid, SIGKILL);
  const absl::Time deadline = absl::Now() + kPatience;
  while (stage.ServerLives().size() < 4 && absl::Now() < deadline) {
    REQUIRE_FALSE(up.AwaitEnd(absl::Milliseconds(10)).has_value());
  }
  CHECK(stage.ServerLives().size() == 4);
  CHECK(up.Stop(kPatience) == 128 + SIGTERM);
  CHECK(AllGone(stage.ServerLives()));
}

TEST_CASE("SIGTERM reaches the trainer, which may finish, and then everything has ended") {
  const Stage stage(
      "trap 'echo saved > saved; exit 0' TERM; echo $$ > started; mkfifo never; while :; do read x <> never; "
      "done");
  LaunchedProcess up = stage.Up();
  stage.AwaitFile("started", &up);
  up.Signal(SIGTERM);
  CHECK(up.AwaitEnd(kPatience) == 128 + SIGTERM);
  CHECK(stage.Text("saved") == "saved\n");
  CHECK(AllGone(stage.ServerLives()));
}

TEST_CASE("When `warpsmith` itself is killed, its processes go with it") {
  const Stage stage("echo $$ > started; exec sleep 600");
  LaunchedProcess up = stage.Up();
  stage.AwaitFile("started", &up);
  up.Signal(SIGKILL);
  CHECK(up.AwaitEnd(kPatience) == 128 + SIGKILL);
  std::vector<pid_t> pids = stage.ServerLives();
  pids.push_back(std::stoi(stage.Text("started")));
  CHECK(AllGone(pids));
}

TEST_CASE("Several trainers get the ranks of one group") {
  const Stage stage("echo \"$RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT\" > rank$RANK",
                    "trainer:\n  num_processes: 2\n");
  LaunchedProcess up = stage.Up();
  CHECK(up.AwaitEnd(kPatience) == 0);
  CHECK_THAT(stage.Text("rank0"), Catch::StartsWith("0 of 2 at 127.0.0.1:"));
  CHECK(stage.Text("rank1").substr(1) == stage.Text("rank0").substr(1));
}

TEST_CASE("A trainer that fails with its output in a log is shown by this run's lines of it") {
  const Stage stage("if [ $RANK = 0 ]; then exec sleep 600; fi; echo no room on device; exit 4",
                    "trainer:\n  num_processes: 2\n");
  std::filesystem::create_directories(stage.File("logs"));
  REQUIRE(WriteFileAtomically(stage.File("logs/trainer-1.log"), "yesterday's failure\n").ok());
  LaunchedProcess up = stage.Up();
  CHECK(up.AwaitEnd(kPatience) == 4);
  CHECK_THAT(stage.Text("up.log"), Catch::Contains("no room on device") && !Catch::Contains("yesterday"));
}

}  // namespace
}  // namespace warpsmith
