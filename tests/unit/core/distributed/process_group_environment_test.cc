#include "core/distributed/process_group_environment.h"

#include <map>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Variables = std::map<std::string, std::string>;

absl::StatusOr<ProcessGroupEnvironment> Read(const Variables& variables) {
  return ReadProcessGroupEnvironment([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

bool Names(const absl::Status& status, const std::string& text) {
  return absl::IsInvalidArgument(status) && status.message().find(text) != absl::string_view::npos;
}

const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "a.b"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"TORCHELASTIC_RUN_ID", "run7"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_MAX_RESTARTS", "3"}};

Variables With(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

}  // namespace

TEST_CASE("without any variable the process is alone") {
  const auto environment = Read({});
  REQUIRE(environment.ok());
  CHECK(environment->rank == 0);
  CHECK(environment->world_size == 1);
}

TEST_CASE("what torchrun sets is read, and keys carry the run") {
  const auto environment = Read(kTorchrun);
  REQUIRE(environment.ok());
  CHECK(environment->rank == 3);
  CHECK(environment->world_size == 4);
  CHECK(environment->local_rank == 1);
  CHECK(environment->master_port == 29500);
  CHECK(environment->agent_store);
  CHECK(environment->restart_count == 2);
  CHECK(environment->restarts_max == 3);
  CHECK(environment->KeyPrefix() == "warpsmith/run7/");
}

TEST_CASE("ranks whose launchers have restarted another number of times look under the same keys") {
  CHECK(Read(With(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "0"))->KeyPrefix() ==
        Read(kTorchrun)->KeyPrefix());
}

TEST_CASE("a local rank needs no LOCAL_WORLD_SIZE, and is bounded by one that is set") {
  Variables five = {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "a.b"}};
  five["MASTER_PORT"] = "29500";
  const auto environment = Read(five);
  REQUIRE(environment.ok());
  CHECK(environment->local_rank == 1);
  CHECK(Names(Read(With(five, "LOCAL_RANK", "4")).status(), "LOCAL_RANK is \"4\""));
  CHECK(Names(Read(With(five, "LOCAL_WORLD_SIZE", "1")).status(), "LOCAL_RANK is \"1\""));
}

TEST_CASE("a job that Slurm queued again is a restart, also where torchrun counts its own") {
  const auto alone = Read({{"SLURM_RESTART_COUNT", "2"}});
  REQUIRE(alone.ok());
  CHECK(alone->restart_count == 2);
  const auto ranks = Read({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"SLURM_RESTART_COUNT", "1"}});
  REQUIRE(ranks.ok());
  CHECK(ranks->restart_count == 1);
  CHECK(Read(With(kTorchrun, "SLURM_RESTART_COUNT", "7"))->restart_count == 9);
  CHECK(Names(Read({{"SLURM_RESTART_COUNT", "x"}}).status(), "SLURM_RESTART_COUNT is \"x\""));
}

TEST_CASE("a variable that is missing or wrong is named with its value") {
  CHECK(Names(Read({{"RANK", "0"}}).status(), "WORLD_SIZE"));
  CHECK(Names(Read({{"WORLD_SIZE", "2"}}).status(), "RANK"));
  CHECK(
      Names(Read(With(kTorchrun, "RANK", "4")).status(), "RANK is \"4\"; it must be an integer from 0 to 3"));
  CHECK(Names(Read(With(kTorchrun, "RANK", "one")).status(), "\"one\""));
  CHECK(Names(Read(With(kTorchrun, "MASTER_PORT", "0")).status(), "MASTER_PORT"));
  CHECK(Names(Read({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).status(), "MASTER_ADDR"));
}

}  // namespace warpsmith
