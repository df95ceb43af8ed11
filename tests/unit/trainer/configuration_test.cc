#include "trainer/configuration.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr char kModel[] =
    "model: {vocab_size: 96, hidden_size: 32, intermediate_size: 32, num_hidden_layers: 1, "
    "num_attention_heads: 2,\n"
    "        num_key_value_heads: 1, head_dim: 16}\n";
constexpr char kData[] = "data: {train: a, held_out: b}\n";
const std::string kSmallest = std::string(kModel) + kData;

absl::StatusOr<Configuration> Read(const std::string& text,
                                   const std::vector<std::string>& assignments = {}) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "run.yaml";
  std::ofstream(path) << text;
  return ReadConfiguration(path, assignments);
}

bool Says(const absl::Status& status, const std::string& text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("the configurations of the tree are valid") {
  for (const char* name : {"demo", "smoke"}) {
    const auto configuration = ReadConfiguration(std::string("configs/") + name + ".yaml", {});
    INFO(configuration.status());
    REQUIRE(configuration.ok());
    CHECK(configuration->run.name == name);
    CHECK(configuration->run.directory == std::string("runs/") + name);
  }
}

TEST_CASE("defaults are those of the design") {
  const auto configuration = Read(kSmallest);
  INFO(configuration.status());
  REQUIRE(configuration.ok());
  CHECK(configuration->grpo.loss.clip_low == 0.2);
  CHECK(configuration->grpo.loss.clip_high == 0.28);
  CHECK(configuration->grpo.loss.weight_max == 2.0);
  CHECK(configuration->grpo.loss.kl_weight == 0.0);
  CHECK(configuration->grpo.num_samples == 8);
  CHECK(configuration->grpo.equal_spread == 0.05);
}

TEST_CASE("a misspelt key, a wrong value and a missing one are all reported") {
  const auto status = Read(std::string(kModel) + "data: {train: a, held_uot: b}\n").status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(Says(status, "held_uot"));
  CHECK(Says(status, "held_out"));
  CHECK(Says(Read(kSmallest, {"trainer.grpo.num_samples=1"}).status(), "num_samples"));
  CHECK(Says(Read(kSmallest, {"trainer.grpo.advantage=gae"}).status(), "gae"));
}

TEST_CASE("the wait for rollout workers has a bound that a user may change") {
  CHECK(Read(kSmallest)->trainer.rollout_wait_seconds == 300);
  CHECK(Read(kSmallest, {"trainer.rollout_wait_seconds=20"})->trainer.rollout_wait_seconds == 20);
  CHECK(Says(Read(kSmallest, {"trainer.rollout_wait_seconds=0"}).status(), "rollout_wait_seconds"));
}

TEST_CASE("assignments override the file and appear in what is stored") {
  const auto configuration = Read(kSmallest, {"trainer.grpo.learning_rate=0.125", "run.seed=9"});
  REQUIRE(configuration.ok());
  CHECK(configuration->grpo.learning_rate == 0.125);
  CHECK(configuration->run.seed == 9);
  CHECK(configuration->resolved_yaml.find("0.125") != std::string::npos);
}

}  // namespace warpsmith
