#include "trainer/phases/rank_settings.h"

#include <fstream>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/core/distributed/ranks.h"

namespace warpsmith {
namespace {

// Configurations of two hosts, whose files lie at other places and have the same content.
class Hosts {
 public:
  RankSettings Settings(int host, const std::vector<std::string>& assignments = {},
                        const TrainingOptions& options = {}) const {
    const auto folder = directory_.path() / std::to_string(host);
    std::filesystem::create_directories(folder);
    for (const char* name : {"train.jsonl", "held_out.jsonl", "other.jsonl"}) {
      REQUIRE(WriteFileAtomically(folder / name, name).ok());
    }
    for (const char* name : {"tokenizer", "prompts"}) {
      std::filesystem::copy(
          std::string("datasets/") + name + "/small", folder / name,
          std::filesystem::copy_options::recursive | std::filesystem::copy_options::skip_existing);
    }
    std::ofstream(folder / "run.yaml")
        << "run: {directory: " << (folder / "run").string() << "}\n"
        << "model: {vocab_size: 1536, hidden_size: 32, intermediate_size: 32, num_hidden_layers: 1,\n"
        << "        num_attention_heads: 2, num_key_value_heads: 1, head_dim: 16}\n"
        << "data: {train: " << (folder / "train.jsonl").string()
        << ", held_out: " << (folder / "held_out.jsonl").string()
        << ", tokenizer: " << (folder / "tokenizer").string()
        << ", prompts: " << (folder / "prompts").string() << "}\n";
    const auto configuration = ReadConfiguration(folder / "run.yaml", assignments);
    INFO(configuration.status().ToString());
    REQUIRE(configuration.ok());
    const auto prompts =
        Prompts::Load(configuration->data.tokenizer, configuration->data.prompts, configuration->model.path);
    REQUIRE(prompts.ok());
    const auto settings = SettingsOf(*configuration, options, *prompts);
    REQUIRE(settings.ok());
    return *settings;
  }

  std::filesystem::path file(int host, const std::string& name) const {
    return directory_.path() / std::to_string(host) / name;
  }

  std::string Differences(const RankSettings& rank_1) const {
    return DescribeDifferences({Settings(0), rank_1});
  }

 private:
  const TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("hosts may differ in paths, threads and what only rank 0 uses") {
  const Hosts hosts;
  CHECK(hosts.Differences(hosts.Settings(1, {"trainer.num_threads=7", "trainer.num_processes=2",
                                             "trainer.rollout_addresses=[\"node:1\"]"})) == "");
}

TEST_CASE("every other key of the trainer is compared, and named with both values") {
  const Hosts hosts;
  CHECK(hosts.Differences(hosts.Settings(1, {"trainer.weight_decay=0.5"})) ==
        "on rank 1, trainer.weight_decay is 0.5, on rank 0 it is 0");
  for (const std::string assignment :
       {"run.seed=9", "run.name=b", "model.rope_theta=5", "model.tie_word_embeddings=true",
        "trainer.checkpoint_steps=3", "trainer.micro_batch_tokens=9", "trainer.collective_timeout_seconds=9",
        "trainer.cold_start.matrix_update=muon", "trainer.cold_start.patience=9",
        "trainer.grpo.num_updates=2", "trainer.grpo.kl_weight=1", "trainer.grpo.advantage=dr_grpo",
        "trainer.grpo.formula=kevin-v1", "trainer.grpo.sampling.temperature=2",
        "trainer.evaluation.every_steps=3"}) {
    const std::string key = assignment.substr(0, assignment.find('='));
    CHECK_THAT(hosts.Differences(hosts.Settings(1, {assignment})), Catch::StartsWith("on rank 1, " + key));
  }
  CHECK_THAT(hosts.Differences(hosts.Settings(1, {}, {.mode = RunMode::kExport})),
             Catch::Contains("--mode is export, on rank 0 it is train"));
}

TEST_CASE("files are compared by their content, and named with both digests") {
  const Hosts hosts;
  const std::string other = "data.held_out=" + hosts.file(1, "other.jsonl").string();
  hosts.Settings(1);
  CHECK_THAT(hosts.Differences(hosts.Settings(1, {other})),
             Catch::Matches("on rank 1, data.held_out is sha256:[0-9a-f]{64}, on rank 0 it is "
                            "sha256:[0-9a-f]{64}"));
  std::ofstream(hosts.file(1, "prompts/optimise.txt"), std::ios::app) << "\n";
  CHECK_THAT(hosts.Differences(hosts.Settings(1)),
             Catch::StartsWith("on rank 1, data.prompts/optimise.txt is sha256:"));
}

TEST_CASE("all ranks are told the same: which rank, which key and both values") {
  const auto statuses = ControlOutcomes(3, [](ControlPlane& control) {
    return CompareOverRanks(control, RankSettings{{"a", control.rank() == 2 ? "1" : "0"}, {"b", "0"}});
  });
  for (const absl::Status& status : statuses) {
    CHECK(absl::IsFailedPrecondition(status));
    CHECK(Contains(status, "on rank 2, a is 1, on rank 0 it is 0; start all ranks"));
  }
  for (const absl::Status& status : ControlOutcomes(2, [](ControlPlane& control) {
         return CompareOverRanks(control, RankSettings{{"a", "0"}});
       })) {
    CHECK(status.ToString() == "OK");
  }
}

TEST_CASE("a rank that cannot say what its settings are ends all ranks") {
  const auto statuses = ControlOutcomes(2, [](ControlPlane& control) {
    if (control.rank() == 0) return CompareOverRanks(control, RankSettings());
    return CompareOverRanks(control, absl::NotFoundError("data.train: no such file"));
  });
  CHECK(Contains(statuses[0], "rank 1: data.train: no such file"));
  CHECK(absl::IsNotFound(statuses[1]));
}

TEST_CASE("of many differences the first are named and the rest counted") {
  std::vector<RankSettings> ranks(6);
  for (char key = 'a'; key <= 'j'; ++key) ranks[1][std::string(1, key)] = "1";
  for (int rank = 2; rank < 6; ++rank) ranks[rank]["z"] = "1";
  const std::string text = DescribeDifferences(ranks);
  CHECK_THAT(text, Catch::Contains("f is 1, on rank 0 it is not set; and 4 more; on rank 2, z is 1") &&
                       Catch::EndsWith("and 2 more ranks differ"));
}

}  // namespace warpsmith
