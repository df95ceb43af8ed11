#include "cli/config_check.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// A folder with stand-ins for the three programs.
struct Programs {
  void Write(const std::string& name, const std::string& script) const {
    const std::filesystem::path path = directory.path() / name;
    REQUIRE(WriteFileAtomically(path, "#!/bin/sh\n" + script + "\n").ok());
    REQUIRE(chmod(path.c_str(), 0700) == 0);
  }
  void WriteAll(const std::string& trainer, const std::string& worker, const std::string& service) const {
    Write("warpsmith-train", trainer);
    Write("warpsmith-rollout", worker);
    Write("warpsmith-reward", service);
  }
  absl::StatusOr<std::string> Resolve() {
    return ResolveConfig(
        {.binaries = directory.path(), .config = "run.yaml", .assignments = {"a.b=1", "c.d=2"}}, &signals);
  }

  TemporaryDirectory directory;
  StopSignals signals;
};

TEST_CASE("What the programs print of their sections is one configuration") {
  Programs programs;
  programs.WriteAll("echo \"train: $*\"", "echo \"rollout: {}\"", "echo \"reward: {}\"");
  const absl::StatusOr<std::string> yaml = programs.Resolve();
  REQUIRE(yaml.ok());
  CHECK(*yaml == "train: --check --config run.yaml --set a.b=1 --set c.d=2\nrollout: {}\nreward: {}\n");
}

TEST_CASE("The faults of all programs are told, those that two programs see once") {
  Programs programs;
  programs.WriteAll("printf 'one\\ntwo\\n' >&2; exit 1", "printf 'two\\nthree\\n' >&2; exit 1",
                    "echo 'reward: {}'");
  const absl::Status faults = programs.Resolve().status();
  CHECK(absl::IsInvalidArgument(faults));
  CHECK(std::string(faults.message()) == "one\ntwo\nthree");
}

TEST_CASE("A program that cannot say, or is not there, is named") {
  Programs programs;
  programs.WriteAll("exit 0", "echo 'no library'; exit 127", "exit 0");
  const std::string broken(programs.Resolve().status().message());
  CHECK_THAT(broken, Catch::Contains("warpsmith-rollout") && Catch::Contains("exit status 127") &&
                         Catch::Contains("no library"));
  std::filesystem::remove(programs.directory.path() / "warpsmith-reward");
  CHECK_THAT(std::string(programs.Resolve().status().message()), Catch::Contains("warpsmith-reward"));
}

TEST_CASE("A signal ends the wait") {
  Programs programs;
  programs.WriteAll("sleep 600", "exit 0", "exit 0");
  kill(getpid(), SIGTERM);
  const absl::Time start = absl::Now();
  CHECK(absl::IsCancelled(programs.Resolve().status()));
  CHECK(absl::Now() - start < absl::Seconds(60));
}

}  // namespace
}  // namespace warpsmith
