#include "rollout_workers/weights_switch.h"

#include <filesystem>
#include <string>

#include "absl/time/clock.h"
#include "core/model/model_fields.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/weights_file.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

ModelConfig Tiny() {
  return {.vocab_size = 97,
          .hidden_size = 32,
          .intermediate_size = 48,
          .num_hidden_layers = 1,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 8,
          .max_position_embeddings = 512,
          .tie_word_embeddings = true};
}

// A switch and its engine, and weights of version v drawn from seed v.
class Bench {
 public:
  OfferedWeights Write(uint64_t version) {
    return WriteWeightsFile(Tiny(), version, version, directory_.path() / std::to_string(version));
  }
  absl::Status Prepare(const OfferedWeights& offered) {
    return weights.Prepare(offered, absl::Now() + kPatience);
  }
  absl::Status Commit(uint64_t version, absl::Duration patience = kPatience) {
    return weights.Commit(version, absl::Now() + patience);
  }
  // "nothing" or the version in use.
  std::string InUse() {
    const EngineStatus status = engine.status();
    if (!status.loaded) return "nothing";
    CHECK(status.weights_sha256 == RandomWeights(Tiny(), status.policy_version).sha256);
    return std::to_string(status.policy_version);
  }

  Engine engine{Tiny(),
                {.num_slots = 2, .context_tokens_max = 512},
                {.on_sample = [](const FinishedSample&) {}, .on_failure = [](const FailedJob&) {}}};
  WeightsSwitch weights{Tiny(), &engine};

 private:
  const TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("prepared weights are used when they are committed, not before") {
  Bench bench;
  REQUIRE(bench.Prepare(bench.Write(3)).ok());
  CHECK(bench.InUse() == "nothing");
  REQUIRE(bench.Commit(3).ok());
  CHECK(bench.InUse() == "3");
  REQUIRE(bench.Prepare(bench.Write(4)).ok());
  CHECK(bench.InUse() == "3");
  REQUIRE(bench.Commit(4).ok());
  CHECK(bench.InUse() == "4");
}

TEST_CASE("a version that was not prepared cannot be committed, and the error says what is there") {
  Bench bench;
  const absl::Status nothing = bench.Commit(3);
  CHECK(absl::IsFailedPrecondition(nothing));
  CHECK(nothing.message() ==
        "Version 3 is not prepared; nothing is, and no weights are in use: prepare it first");
  REQUIRE(bench.Prepare(bench.Write(3)).ok());
  REQUIRE(bench.Commit(3).ok());
  REQUIRE(bench.Prepare(bench.Write(4)).ok());
  CHECK(bench.Commit(5).message() ==
        "Version 5 is not prepared; version 4 is, and version 3 is in use: prepare it first");
  CHECK(bench.InUse() == "3");
}

TEST_CASE("both steps may be repeated, without reading the file again") {
  Bench bench;
  const OfferedWeights offered = bench.Write(3);
  REQUIRE(bench.Prepare(offered).ok());
  std::filesystem::remove(offered.path);
  CHECK(bench.Prepare(offered).ok());
  REQUIRE(bench.Commit(3).ok());
  CHECK(bench.Commit(3).ok());
  CHECK(bench.Prepare(offered).ok());
  CHECK(bench.Commit(3).ok());
  CHECK(bench.InUse() == "3");
}

TEST_CASE("other weights under a version in use are read, not taken for those") {
  Bench bench;
  REQUIRE(bench.Prepare(bench.Write(3)).ok());
  REQUIRE(bench.Commit(3).ok());
  OfferedWeights other = bench.Write(4);
  other.policy_version = 3;
  std::filesystem::remove(other.path);
  CHECK(absl::IsNotFound(bench.Prepare(other)));
}

TEST_CASE("weights of a model with another rope_theta are refused before they are read, with both values") {
  Bench bench;
  OfferedWeights offered = bench.Write(3);
  offered.model_fields = FieldsOf(Tiny());
  CHECK(bench.Prepare(offered).ok());
  ModelConfig other = Tiny();
  other.rope_theta = 5000;
  offered.model_fields = FieldsOf(other);
  const absl::Status refused = bench.Prepare(offered);
  CHECK(absl::IsInvalidArgument(refused));
  CHECK_THAT(std::string(refused.message()),
             Catch::Contains(": rope_theta is 5000.0, not 10000.0: start both"));
  CHECK(bench.Commit(3).ok());
}

TEST_CASE("weights that cannot be read leave what was prepared before") {
  Bench bench;
  REQUIRE(bench.Prepare(bench.Write(3)).ok());
  OfferedWeights damaged = bench.Write(4);
  damaged.buffers[0].sha256 = std::string(64, '0');
  CHECK(absl::IsDataLoss(bench.Prepare(damaged)));
  CHECK(absl::IsFailedPrecondition(bench.Commit(4)));
  REQUIRE(bench.Commit(3).ok());
  CHECK(bench.InUse() == "3");
}

TEST_CASE("a commit that samples keep waiting fails, and may be repeated when they are done") {
  Bench bench;
  REQUIRE(bench.Prepare(bench.Write(3)).ok());
  REQUIRE(bench.Commit(3).ok());
  REQUIRE(bench.Prepare(bench.Write(4)).ok());
  GenerationGroup group{.task_index = 0, .prompt_token_ids = {1, 2, 3}, .samples = {}};
  for (int sample = 0; sample < 100; ++sample) group.samples.push_back({.sample_index = sample});
  REQUIRE(bench.engine
              .Submit({.id = 1,
                       .groups = {group},
                       .sampling = {.temperature = 1.0, .answer_tokens_max = 500},
                       .policy_version = 3})
              .ok());
  CHECK(absl::IsFailedPrecondition(bench.Commit(4, absl::ZeroDuration())));
  CHECK(bench.InUse() == "3");
  CHECK(bench.Commit(4).ok());  // waits for them
  CHECK(bench.InUse() == "4");
}

TEST_CASE("an offer that cannot be taken leaves what is in use and what was prepared") {
  Bench bench;
  REQUIRE(bench.Prepare(bench.Write(3)).ok());
  REQUIRE(bench.Commit(3).ok());
  REQUIRE(bench.Prepare(bench.Write(4)).ok());
  OfferedWeights other = bench.Write(5);
  other.transport = "carrier pigeon";
  const absl::Status status = bench.Prepare(other);
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("\"carrier pigeon\""));
  CHECK(
      absl::IsUnimplemented(bench.weights.Commit(4, absl::Now() + kPatience, paged::EntriesOnChange::kKeep)));
  CHECK(bench.InUse() == "3");
  REQUIRE(bench.Commit(4).ok());
  CHECK(bench.InUse() == "4");
}

TEST_CASE("an engine on the CPU does not sleep, and has no part in a broadcast") {
  Bench bench;
  CHECK(absl::IsUnimplemented(bench.weights.Sleep(SleepDepth::kPages, absl::Now() + kPatience)));
  CHECK(absl::IsUnimplemented(bench.weights.Wake(absl::Now() + kPatience)));
  OfferedWeights broadcast = bench.Write(3);
  broadcast.transport = "nccl";
  CHECK(absl::IsFailedPrecondition(bench.Prepare(broadcast)));
  CHECK(bench.InUse() == "nothing");
}

}  // namespace warpsmith
