#include "trainer/configuration.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/trainer/written_configuration.h"

namespace warpsmith {
namespace {

constexpr char kModel[] =
    "model: {vocab_size: 96, hidden_size: 32, intermediate_size: 32, num_hidden_layers: 1, "
    "num_attention_heads: 2,\n"
    "        num_key_value_heads: 1, head_dim: 16}\n";
const std::string kSmallest = std::string(kModel) + kSmallestData;

absl::StatusOr<Configuration> Read(const std::string& text,
                                   const std::vector<std::string>& assignments = {}) {
  return ReadWritten(text, assignments);
}

}  // namespace

TEST_CASE("the configurations of the tree are valid") {
  for (const char* name : {"demo", "smoke"}) {
    const auto configuration =
        ReadConfiguration(std::string("configs/") + name + ".yaml", {}, DataFiles::kNotRead);
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

TEST_CASE("every rollout worker's address that nobody can dial is reported") {
  const auto status =
      Read(kSmallest + "trainer: {rollout_addresses: [\"0.0.0.0:50051\", \"node7:50051\", node8]}\n")
          .status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(Says(status, "trainer.rollout_addresses: address \"0.0.0.0:50051\""));
  CHECK(Says(status, "trainer.rollout_addresses: address \"node8\""));
  CHECK_FALSE(Says(status, "node7"));
}

TEST_CASE("a misspelt key, a wrong value and a missing one are all reported") {
  const auto status = Read(std::string(kModel) + "data: {train: README.md, held_uot: README.md}\n").status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(Says(status, "held_uot"));
  CHECK(Says(status, "held_out"));
  CHECK(Says(Read(kSmallest, {"trainer.grpo.num_samples=1"}).status(), "num_samples"));
  CHECK(Says(Read(kSmallest, {"trainer.grpo.advantage=gae"}).status(), "gae"));
}

TEST_CASE("a run's name that leaves the folder of runs is refused") {
  for (const char* name : {"a", "a/b", "a..b", "..a", "a/../b", "\"\\u00e9\""}) {
    CHECK(Read(kSmallest, {std::string("run.name=") + name}).ok());
  }
  for (const char* name : {"\"\"", "..", "../a", "a/../..", ".", "a/..", "/a", "./"}) {
    INFO(name);
    CHECK(Says(Read(kSmallest, {std::string("run.name=") + name}).status(), "run.name: is \""));
  }
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

TEST_CASE("faults of all sections are reported at once, missing files with their line and the way out") {
  const auto status =
      Read(
          "run: {nmae: x}\nmodel: {path: nowhere}\ndata:\n  train: datasets/generated/none.jsonl\n"
          "  held_out: own.jsonl\n  tokenizer: README.md\ntrainer: {grpo: {num_sample: 4}}\n")
          .status();
  CHECK(absl::IsInvalidArgument(status));
  for (const char* fault :
       {"run.yaml:1:7: run.nmae: is not a known key; did you mean \"name\"?",
        "run.yaml:2:15: model.path: there is no folder nowhere",
        "run.yaml:4:10: data.train: there is no file datasets/generated/none.jsonl",
        "; ./dev datasets makes the files of that folder",
        "run.yaml:5:13: data.held_out: there is no file own.jsonl", "docs/own_tasks.md says how",
        "run.yaml:6:14: data.tokenizer: README.md is a file, not a folder",
        "trainer.grpo.num_sample: is not a known key; did you mean \"num_samples\"?"}) {
    INFO(fault << " in\n" << status);
    CHECK(Says(status, fault));
  }
}

TEST_CASE("prompts of another language are refused, and those of none fit every one") {
  const auto read = [](const char* prompts, const char* language) {
    return Read(kSmallest, {std::string("data.prompts=datasets/prompts/") + prompts,
                            std::string("data.language=") + language})
        .status();
  };
  CHECK(read("coder", "cpp").ok());
  CHECK(read("coder_cuda", "cuda").ok());
  CHECK(read("small", "cpp").ok());
  CHECK(read("small", "cuda").ok());
  CHECK(Says(read("coder", "cuda"), "asks for programs in cpp, and data.language is cuda"));
  CHECK(Says(read("coder_cuda", "cpp"), "asks for programs in cuda, and data.language is cpp"));
}

TEST_CASE("an export does not ask for the tasks") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "run.yaml";
  std::ofstream(path) << kModel << "data: {train: none.jsonl, held_out: none.jsonl}\n";
  CHECK(absl::IsInvalidArgument(ReadConfiguration(path, {}).status()));
  CHECK(ReadConfiguration(path, {}, DataFiles::kNotRead).ok());
}

TEST_CASE("a model without sizes is told which are missing, one that contradicts itself why") {
  const auto none = Read(kSmallestData).status();
  CHECK(Says(none, "run.yaml: model.hidden_size: is missing; it has no default"));
  const auto odd = Read(kSmallest, {"model.num_key_value_heads=3"}).status();
  CHECK(Says(odd, "run.yaml:1:8: model: model config: num_attention_heads is 2, but must be a multiple"));
}

TEST_CASE("the resolved sections load back, and hold no other process's") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "run.yaml";
  std::ofstream(path) << kSmallest << "rollout: {num_slots: 3}\n";
  const auto resolved = ResolveConfiguration(path, {"trainer.grpo.kl_weight=0.5"});
  REQUIRE(resolved.ok());
  CHECK(resolved->find("rollout:") == std::string::npos);
  const auto again = Read(*resolved);
  INFO(again.status());
  REQUIRE(again.ok());
  CHECK(again->grpo.loss.kl_weight == 0.5);
  CHECK(ReadConfiguration(path, {})->resolved_yaml.find("num_slots: 3") != std::string::npos);
}

}  // namespace warpsmith
