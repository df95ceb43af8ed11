#include "cli/process_commands.h"

#include <algorithm>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

RunLayout Layout() {
  return {.binaries = "/bin",
          .config = "configs/demo.yaml",
          .assignments = {"run.seed=7"},
          .run_directory = "runs/demo",
          .socket_directory = "/tmp/s"};
}

bool Contains(const std::vector<std::string>& arguments, const std::vector<std::string>& part) {
  return std::search(arguments.begin(), arguments.end(), part.begin(), part.end()) != arguments.end();
}

TEST_CASE("Every process gets the configuration and the assignments") {
  for (const std::vector<std::string>& arguments :
       {RewardServer(Layout()).command.arguments, RolloutServer(Layout()).command.arguments,
        TrainerCommands(Layout())[0].arguments, TrainerMode(Layout(), "export").arguments}) {
    CHECK(Contains(arguments, {"--config", "configs/demo.yaml", "--set", "run.seed=7"}));
  }
}

TEST_CASE("Callers are given the addresses at which servers listen") {
  const ServerSpec reward = RewardServer(Layout()), rollout = RolloutServer(Layout());
  CHECK(reward.address != rollout.address);
  CHECK(Contains(reward.command.arguments, {"--address", reward.address}));
  CHECK(Contains(rollout.command.arguments,
                 {"--address", rollout.address, "--reward-address", reward.address}));
  CHECK(Contains(TrainerCommands(Layout())[0].arguments, {"--rollout-address", rollout.address}));
}

TEST_CASE("A single trainer gets no rank, so that it needs no rendezvous") {
  const std::vector<Command> commands = TrainerCommands(Layout());
  REQUIRE(commands.size() == 1);
  CHECK(commands[0].environment.empty());
  CHECK(commands[0].log_path.empty());
}

TEST_CASE("Each of several trainers gets its rank, a log of its own, and the first the terminal") {
  RunLayout layout = Layout();
  layout.num_trainers = 2;
  layout.rendezvous_port = 4242;
  const std::vector<Command> commands = TrainerCommands(layout);
  REQUIRE(commands.size() == 2);
  using Variable = std::pair<std::string, std::string>;
  for (const Variable& wanted : {Variable{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "4242"}}) {
    CHECK(std::count(commands[1].environment.begin(), commands[1].environment.end(), wanted) == 1);
  }
  CHECK(commands[0].log_path.empty());
  CHECK_FALSE(commands[1].log_path.empty());
}

TEST_CASE("A resumed run says so to its trainer") {
  RunLayout layout = Layout();
  CHECK_FALSE(Contains(TrainerCommands(layout)[0].arguments, {"--resume"}));
  layout.resume = true;
  CHECK(Contains(TrainerCommands(layout)[0].arguments, {"--resume"}));
}

TEST_CASE("A run that overwrites another says so to its trainer") {
  RunLayout layout = Layout();
  CHECK_FALSE(Contains(TrainerCommands(layout)[0].arguments, {"--overwrite"}));
  layout.overwrite = true;
  CHECK(Contains(TrainerCommands(layout)[0].arguments, {"--overwrite"}));
}

TEST_CASE("The dry run before a run is asked for what the trainers are asked for, alone") {
  RunLayout layout = Layout();
  layout.resume = true;
  layout.num_trainers = 2;
  layout.trainer_flags = {"--mode", "eval"};
  const Command command = TrainerDryRun(layout);
  CHECK(Contains(command.arguments, {"--resume", "--mode", "eval", "--dry-run"}));
  CHECK(command.environment.empty());
  CHECK(command.log_path.empty());
}

TEST_CASE("A mode of the trainer gets the flags that were given for it") {
  RunLayout layout = Layout();
  layout.trainer_flags = {"--out", "coder"};
  const Command command = TrainerMode(layout, "export");
  CHECK(Contains(command.arguments, {"--mode", "export", "--out", "coder"}));
}

}  // namespace
TEST_CASE("to serve is a mode of the rollout worker's program, with flags as they are") {
  const Command command = ServeCommand("/bin", {"--model", "a folder", "--slots", "2"});
  CHECK(command.arguments ==
        std::vector<std::string>{"/bin/warpsmith-rollout", "serve", "--model", "a folder", "--slots", "2"});
  CHECK(command.log_path.empty());
}

}  // namespace warpsmith
