#include "trainer/run_folder/run_identity.h"

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr char kPrompts[] = "abc";

// A configuration whose data files are in `directory`.
Configuration MakeConfiguration(const std::filesystem::path& directory) {
  Configuration configuration;
  configuration.run = {.name = "a", .seed = 5};
  configuration.model.config.hidden_size = 32;
  configuration.data.train = directory / "train.jsonl";
  configuration.data.held_out = directory / "held_out.jsonl";
  for (const auto& path : {configuration.data.train, configuration.data.held_out}) {
    REQUIRE(WriteFileAtomically(path, path.filename().string()).ok());
  }
  return configuration;
}

RunIdentity Identify(const Configuration& configuration, const char* prompts = kPrompts) {
  const auto identity = IdentifyRun(configuration, prompts);
  REQUIRE(identity.ok());
  return *identity;
}

std::string Differences(const RunIdentity& present, const RunIdentity& checkpoint,
                        std::string_view prefix = "") {
  return std::string(CompareIdentities(present, checkpoint, prefix).message());
}

}  // namespace

TEST_CASE("a run stays itself when its files move, it becomes longer, or its learning rate changes") {
  TemporaryDirectory one, other;
  Configuration changed = MakeConfiguration(other.path());
  changed.run.directory = "elsewhere";
  changed.grpo.num_steps = 7;
  changed.grpo.learning_rate = 1;
  changed.trainer.num_threads = 9;
  CHECK(CompareIdentities(Identify(changed), Identify(MakeConfiguration(one.path()))).ok());
}

TEST_CASE("every difference is named with both values, contents without their digests") {
  TemporaryDirectory directory;
  const Configuration configuration = MakeConfiguration(directory.path());
  const RunIdentity checkpoint = Identify(configuration);
  Configuration changed = configuration;
  changed.run = {.name = "b", .seed = 6};
  changed.model.config.hidden_size = 64;
  changed.model.config.rms_norm_eps = 1e-5;
  changed.model.config.tie_word_embeddings = true;
  changed.data.language = "cuda";
  REQUIRE(WriteFileAtomically(changed.data.train, "other tasks").ok());
  CHECK(Differences(Identify(changed, "abd"), checkpoint) ==
        "data.language is cuda, there it is cpp; data.prompts and data.tokenizer has other content; "
        "data.train has other content; model.hidden_size is 64, there it is 32; "
        "model.rms_norm_eps is 1.0000000000000001e-05, there it is 9.9999999999999995e-07; "
        "model.tie_word_embeddings is true, there it is false; run.name is b, there it is a; "
        "run.seed is 6, there it is 5");
  CHECK(Differences(Identify(changed), checkpoint, "model.h") == "model.hidden_size is 64, there it is 32");
}

TEST_CASE("another architecture and another stretch of positions are another run") {
  TemporaryDirectory directory;
  const Configuration configuration = MakeConfiguration(directory.path());
  Configuration changed = configuration;
  changed.model.config.qk_norm = false;
  changed.model.config.rope_scaling = {.type = RopeType::kLinear, .factor = 2};
  CHECK(Differences(Identify(changed), Identify(configuration)) ==
        "model.architectures is LlamaForCausalLM, there it is Qwen3ForCausalLM; "
        "model.rope_scaling is linear, factor 2, there it is default");
}

TEST_CASE("a data file that was not there before is a difference, an unknown key is none") {
  TemporaryDirectory directory;
  Configuration configuration = MakeConfiguration(directory.path());
  const RunIdentity checkpoint = Identify(configuration);
  configuration.data.optimise = configuration.data.train;
  CHECK_THAT(Differences(Identify(configuration), checkpoint), Catch::StartsWith("data.optimise is sha256:"));
  CHECK(CompareIdentities(Identify(configuration), {}).ok());
  CHECK(CompareIdentities(checkpoint, {{"run.mood", "good"}}).ok());
}

TEST_CASE("a data file that cannot be read is named with its key") {
  TemporaryDirectory directory;
  Configuration configuration = MakeConfiguration(directory.path());
  configuration.data.unseen_operator = "/nowhere.jsonl";
  const absl::Status status = IdentifyRun(configuration, kPrompts).status();
  CHECK(absl::IsNotFound(status));
  CHECK_THAT(std::string(status.message()),
             Catch::StartsWith("data.unseen_operator: ") && Catch::Contains("/nowhere.jsonl"));
}

}  // namespace warpsmith
