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
  const auto policy = MakePolicy();
  REQUIRE(policy->KeepReference().ok());
  RunProgress progress;
  for (int step = 1; step <= 4; ++step) {
    progress.grpo.step = step;
    policy->set_num_steps(10 + step);
    REQUIRE(store.Save(progress, *policy).ok());
  }
  const auto newest = store.Newest();
  REQUIRE(newest.ok());
  REQUIRE(newest->has_value());
  const auto loaded = LoadProgress(**newest);
  REQUIRE(loaded.ok());
  CHECK(loaded->progress.grpo.step == 4);
  CHECK(loaded->num_optimiser_steps == 14);
  CHECK(loaded->identity == RunIdentity{{"run.seed", "5"}});
  CpuTrainer restored(policy->layout(), {}, nullptr);
  REQUIRE(LoadTraining(**newest, loaded->num_optimiser_steps, restored).ok());
  CHECK(restored.num_steps() == 14);
  CHECK(BytesOf(restored.weights()) == BytesOf(policy->weights()));
  restored.weights().buffer(1).detach().zero_();
  REQUIRE(restored.KeepReference().ok());
  REQUIRE(LoadState(**newest, StateSet::kReference, restored).ok());
  std::vector<float> reference(16), weights(16);
  REQUIRE(restored.Read(StateSet::kReference, 1, 64, absl::MakeSpan(reference)).ok());
  REQUIRE(policy->Read(StateSet::kWeights, 1, 64, absl::MakeSpan(weights)).ok());
  CHECK(reference == weights);
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path() / "checkpoints"), {}) == 2);
}

TEST_CASE("the checkpoint of the best SFT weights stays while newer ones go, and is found by its number") {
  TemporaryDirectory directory;
  CheckpointStore store(directory.path(), 1, {});
  const auto policy = MakePolicy();
  REQUIRE(store.NextNumber().value() == 1);
  RunProgress progress{.cold_start = {.best_checkpoint = 1}};
  const std::string best = BytesOf(policy->weights());
  for (int save = 0; save < 3; ++save) {
    REQUIRE(store.Save(progress, *policy).ok());
    policy->weights().buffer(1).detach().add_(1.0);
  }
  CHECK(store.NextNumber().value() == 4);
  const auto found = store.Find(1);
  REQUIRE(found.ok());
  CHECK(store.NumberOf(*found).value() == 1);
  REQUIRE(LoadBestWeights(*found, *policy).ok());
  CHECK(BytesOf(policy->weights()) == best);
  CHECK(absl::IsNotFound(store.Find(2).status()));
  CHECK(absl::IsNotFound(store.NumberOf(directory.path() / "elsewhere").status()));
  progress.cold_start.best_checkpoint = 0;
  REQUIRE(store.Save(progress, *policy).ok());
  CHECK(absl::IsNotFound(store.Find(1).status()));
}

TEST_CASE("the best weights of each checkpoint that is kept stay, for a run may go on from any of them") {
  TemporaryDirectory directory;
  CheckpointStore store(directory.path(), 2, {});
  const auto policy = MakePolicy();
  for (const int64_t best : {1, 1, 1, 4}) {
    REQUIRE(store.Save({.cold_start = {.best_checkpoint = best}}, *policy).ok());
  }
  CHECK(store.Find(1).ok());  // of checkpoint 3, should 4 be damaged
  CHECK(absl::IsNotFound(store.Find(2).status()));
  REQUIRE(store.Save({.cold_start = {.best_checkpoint = 4}}, *policy).ok());
  CHECK(absl::IsNotFound(store.Find(1).status()));
  CHECK(store.Find(4).ok());
}

TEST_CASE("best weights that an earlier version kept in a file of their own are taken from there") {
  TemporaryDirectory directory;
  CheckpointStore store(directory.path(), 2, {});
  const auto policy = MakePolicy();
  REQUIRE(store.Save({}, *policy).ok());
  const std::string first = BytesOf(policy->weights());
  policy->weights().buffer(1).detach().add_(1.0);
  REQUIRE(store.Save({}, *policy).ok());
  const std::filesystem::path older = store.Find(2).value();
  std::filesystem::copy_file(TensorPath(store.Find(1).value(), StateSet::kWeights),
                             older / "best.safetensors");
  REQUIRE(LoadBestWeights(older, *policy).ok());
  CHECK(BytesOf(policy->weights()) == first);
}

TEST_CASE("saving removes what a save that was cut short left") {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "checkpoint_000007.tmp");
  REQUIRE(CheckpointStore(directory.path(), 1, {}).Save({}, *MakePolicy()).ok());
  CHECK_FALSE(std::filesystem::exists(directory.path() / "checkpoint_000007.tmp"));
  CHECK(std::filesystem::exists(directory.path() / "checkpoint_000001"));
}

TEST_CASE("weights of another shape and sets that are not there are refused") {
  TemporaryDirectory directory;
  CheckpointStore store(directory.path(), 1, {});
  const auto policy = MakePolicy();
  REQUIRE(store.Save({}, *policy).ok());
  const std::filesystem::path checkpoint = store.Newest()->value();
  ModelConfig wider = TinyModel();
  wider.intermediate_size = 64;
  CpuTrainer other(ParameterLayout(wider), {}, nullptr);
  CHECK(absl::IsInvalidArgument(LoadState(checkpoint, StateSet::kWeights, other)));
  CHECK(absl::IsNotFound(LoadState(checkpoint, StateSet::kReference, *policy)));
}

TEST_CASE("progress of a newer format is refused, and one of before there were formats is read") {
  TemporaryDirectory directory;
  CheckpointStore store(directory.path(), 1, {{"run.seed", "5"}});
  REQUIRE(store.Save({.policy_version = 3}, *MakePolicy()).ok());
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
  REQUIRE(store.Save({}, *MakePolicy()).ok());
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
