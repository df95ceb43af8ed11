#include "trainer/run_folder/checkpoint_store.h"

#include "core/base/file.h"
#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/trainer/policy_batch.h"

namespace warpsmith {

TEST_CASE("a checkpoint gives back progress and weights, and old ones go") {
  TemporaryDirectory directory;
  CheckpointStore store(directory.path() / "checkpoints", 2, {{"run.seed", "5"}});
  CHECK_FALSE(store.Newest()->has_value());
  CHECK_FALSE(std::filesystem::exists(directory.path() / "checkpoints"));
  Policy policy = MakePolicy(at::kFloat);
  RunProgress progress;
  for (int step = 1; step <= 4; ++step) {
    progress.grpo.step = step;
    REQUIRE(store.Save(progress, 10 + step, {{"weights", &policy.parameters}}).ok());
  }
  const auto newest = store.Newest();
  REQUIRE(newest.ok());
  REQUIRE(newest->has_value());
  const auto loaded = LoadProgress(**newest);
  REQUIRE(loaded.ok());
  CHECK(loaded->progress.grpo.step == 4);
  CHECK(loaded->num_optimiser_steps == 14);
  CHECK(loaded->identity == RunIdentity{{"run.seed", "5"}});
  Parameters restored(policy.parameters.layout());
  REQUIRE(LoadParameters(**newest, {"weights", &restored}).ok());
  CHECK(restored.BufferBytes(1) == policy.parameters.BufferBytes(1));
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path() / "checkpoints"), {}) == 2);
}

TEST_CASE("saving removes what a save that was cut short left") {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "checkpoint_000007.tmp");
  REQUIRE(CheckpointStore(directory.path(), 1, {}).Save({}, 0, {}).ok());
  CHECK_FALSE(std::filesystem::exists(directory.path() / "checkpoint_000007.tmp"));
  CHECK(std::filesystem::exists(directory.path() / "checkpoint_000001"));
}

TEST_CASE("weights of another shape and sets that are not there are refused") {
  TemporaryDirectory directory;
  CheckpointStore store(directory.path(), 1, {});
  Policy policy = MakePolicy(at::kFloat);
  REQUIRE(store.Save({}, 0, {{"weights", &policy.parameters}}).ok());
  const std::filesystem::path checkpoint = store.Newest()->value();
  ModelConfig wider = TinyModel();
  wider.intermediate_size = 64;
  Parameters other{ParameterLayout(wider)};
  CHECK(absl::IsInvalidArgument(LoadParameters(checkpoint, {"weights", &other})));
  CHECK(absl::IsNotFound(LoadParameters(checkpoint, {"best", &policy.parameters})));
}

TEST_CASE("progress of a newer format is refused, and one of before there were formats is read") {
  TemporaryDirectory directory;
  CheckpointStore store(directory.path(), 1, {{"run.seed", "5"}});
  REQUIRE(store.Save({.policy_version = 3}, 7, {}).ok());
  const std::filesystem::path checkpoint = store.Newest()->value();
  nlohmann::json progress = nlohmann::json::parse(ReadFile(checkpoint / "progress.json").value());
  for (const nlohmann::json& format : {nlohmann::json(3), nlohmann::json("2"), nlohmann::json()}) {
    progress["format"] = format;
    REQUIRE(WriteFileAtomically(checkpoint / "progress.json", progress.dump()).ok());
    const absl::Status status = LoadProgress(checkpoint).status();
    CHECK(absl::IsFailedPrecondition(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("has format " + format.dump()));
  }
  progress.erase("format");
  progress.erase("identity");
  REQUIRE(WriteFileAtomically(checkpoint / "progress.json", progress.dump()).ok());
  const auto loaded = LoadProgress(checkpoint);
  REQUIRE(loaded.ok());
  CHECK(loaded->progress.policy_version == 3);
  CHECK(loaded->identity.empty());
}

TEST_CASE("an identity that is none is an error and no exception") {
  TemporaryDirectory directory;
  CheckpointStore store(directory.path(), 1, {});
  REQUIRE(store.Save({}, 7, {}).ok());
  const std::filesystem::path checkpoint = store.Newest()->value();
  nlohmann::json progress = nlohmann::json::parse(ReadFile(checkpoint / "progress.json").value());
  for (const char* key : {"identity", "num_optimiser_steps"}) {
    nlohmann::json changed = progress;
    changed[key] = nlohmann::json::array({1});
    REQUIRE(WriteFileAtomically(checkpoint / "progress.json", changed.dump()).ok());
    CHECK(absl::IsInvalidArgument(LoadProgress(checkpoint).status()));
  }
}

}  // namespace warpsmith
