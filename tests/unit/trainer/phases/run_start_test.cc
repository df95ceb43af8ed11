#include "trainer/phases/run_start.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/core/distributed/ranks.h"
#include "tests/unit/trainer/policy_batch.h"
#include "trainer/run_folder/checkpoint_store.h"

namespace warpsmith {
namespace {

namespace fs = std::filesystem;

constexpr char kPrompts[] = "prompts";

// A configuration of a tiny run in `directory`/run, with its data beside it.
class Stage {
 public:
  Stage() {
    configuration.run = {.name = "tiny", .directory = directory_.path() / "run", .seed = 5};
    configuration.model.config = TinyModel();
    configuration.data.train = configuration.data.held_out = directory_.path() / "tasks.jsonl";
    REQUIRE(WriteFileAtomically(configuration.data.train, "{}\n").ok());
  }

  // A checkpoint such as the run itself would save, with `more` in its identity.
  void SaveCheckpoint(const RunIdentity& more = {}, const RunProgress& progress = {},
                      bool with_reference = false) const {
    auto identity = IdentifyRun(configuration, kPrompts);
    REQUIRE(identity.ok());
    identity->insert(more.begin(), more.end());
    const auto policy = MakePolicy();
    if (with_reference) REQUIRE(policy->KeepReference().ok());
    REQUIRE(CheckpointStore(folder() / "checkpoints", 2, *identity).Save(progress, *policy).ok());
  }

  absl::StatusOr<BegunRun> Begin(const TrainingOptions& options) const {
    return BeginRun(configuration, options, kPrompts, *alone_);
  }

  fs::path folder() const { return configuration.run.directory; }

  Configuration configuration;

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<ControlPlane> alone_ = MakeLoneControlPlane();
};

bool IsLocked(const fs::path& folder) { return absl::IsUnavailable(RunLock::Acquire(folder).status()); }

}  // namespace

TEST_CASE("a fresh run makes its folder and holds it for as long as it lasts") {
  const Stage stage;
  {
    const auto run = stage.Begin({});
    REQUIRE(run.ok());
    CHECK(run->start == RunStart::kFresh);
    CHECK_FALSE(run->checkpoint.has_value());
    CHECK(run->identity.at("run.seed") == "5");
    CHECK(IsLocked(stage.folder()));
    CHECK(absl::IsUnavailable(stage.Begin({.request = {.resume = true}}).status()));
  }
  CHECK_FALSE(IsLocked(stage.folder()));
}

TEST_CASE("every rank is given the checkpoint that rank 0 chose, and rank 0 the lock") {
  const Stage stage;
  stage.SaveCheckpoint();
  const TrainingOptions options{.request = {.resume = true}};
  const auto statuses = ControlOutcomes(3, [&](ControlPlane& control) -> absl::Status {
    ASSIGN_OR_RETURN(const BegunRun run, BeginRun(stage.configuration, options, kPrompts, control));
    const bool right = run.start == RunStart::kCheckpoint &&
                       run.checkpoint == stage.folder() / "checkpoints" / "checkpoint_000001" &&
                       run.lock.has_value() == (control.rank() == 0);
    return right ? absl::OkStatus() : absl::InternalError("another beginning");
  });
  for (const absl::Status& status : statuses) CHECK(status.ToString() == "OK");
}

TEST_CASE("what rank 0 refuses, all refuse, and no folder is made") {
  const Stage stage;
  const TrainingOptions options{.request = {.resume = true}};
  const auto statuses = ControlOutcomes(2, [&](ControlPlane& control) {
    return BeginRun(stage.configuration, options, kPrompts, control).status();
  });
  CHECK(absl::IsNotFound(statuses[0]));
  CHECK(std::string(statuses[1].message()) == "rank 0: " + std::string(statuses[0].message()));
  CHECK_FALSE(fs::exists(stage.folder()));
}

TEST_CASE("overwriting is decided here and done later") {
  const Stage stage;
  stage.SaveCheckpoint();
  const auto run = stage.Begin({.request = {.overwrite = true}});
  REQUIRE(run.ok());
  CHECK(run->start == RunStart::kOverwrite);
  CHECK_FALSE(run->checkpoint.has_value());
  CHECK(fs::exists(stage.folder() / "checkpoints" / "checkpoint_000001"));
}

TEST_CASE("a checkpoint of another seed is no start for this run, but can be read") {
  Stage stage;
  stage.SaveCheckpoint();
  stage.configuration.run.seed = 6;
  const absl::Status status = stage.Begin({.request = {.resume = true}}).status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("run.seed is 6, there it is 5"));
  CHECK(stage.Begin({.mode = RunMode::kExport}).ok());
  stage.configuration.model.config.rope_theta = 7;
  CHECK(absl::IsFailedPrecondition(stage.Begin({.mode = RunMode::kExport}).status()));
}

TEST_CASE("a run that left its formula to the reward service goes on with that one only") {
  Stage stage;
  const auto begin = [&] { return stage.Begin({.request = {.resume = true}}); };
  const auto settle = [&](const std::set<std::string>& formulas) {
    auto run = begin();
    REQUIRE(run.ok());
    const absl::Status status = SettleFormula(formulas, *run);
    if (status.ok()) CHECK(run->identity.at(kFormulaKey) == *formulas.begin());
    return status;
  };
  stage.SaveCheckpoint({{kFormulaKey, "the reward service's default"}});
  CHECK(settle({"kevin-v1"}).ok());  // of an older version, which does not tell what it was
  stage.SaveCheckpoint({{kFormulaKey, "warpsmith-v2"}});
  CHECK(settle({"warpsmith-v2"}).ok());
  const absl::Status status = settle({"kevin-v1"});
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("trainer.grpo.formula is kevin-v1, there it is warpsmith-v2") &&
                 Catch::Contains("--set trainer.grpo.formula=warpsmith-v2"));

  const absl::Status several = settle({"kevin-v1", "warpsmith-v2"});
  CHECK(absl::IsInvalidArgument(several));
  CHECK_THAT(std::string(several.message()), Catch::Contains("kevin-v1, warpsmith-v2"));

  stage.configuration.grpo.formula = "warpsmith-v2";  // the way out
  CHECK(settle({"warpsmith-v2"}).ok());
  stage.configuration.grpo.formula = "kevin-v1";
  CHECK(absl::IsFailedPrecondition(begin().status()));
}

TEST_CASE("SFT does not go on with the moments of another optimiser") {
  Stage stage;
  const auto outcome = [&](const ColdStartProgress& progress) {
    stage.SaveCheckpoint({}, {.cold_start = progress});
    return stage.Begin({.request = {.resume = true}}).status();
  };
  const absl::Status status = outcome({.step = 3, .matrix_update = "muon"});
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("trainer.cold_start.matrix_update is adamw, there it is muon") &&
                 Catch::Contains("--set trainer.cold_start.matrix_update=muon"));
  CHECK(outcome({.finished = true, .step = 3, .matrix_update = "muon"}).ok());  // its moments are gone
  CHECK(outcome({.step = 3}).ok());  // of an older version, which does not tell
  stage.configuration.cold_start.matrix_update = MatrixUpdate::kMuon;  // the way out
  CHECK(outcome({.step = 3, .matrix_update = "muon"}).ok());
}

TEST_CASE("a KL term that is new needs weights after SFT that the checkpoint may lack") {
  Stage stage;
  stage.configuration.grpo.loss.kl_weight = 0.1;
  const auto begin = [&](RunMode mode) {
    return stage.Begin({.mode = mode, .request = {.resume = true}}).status();
  };
  RunProgress progress{.cold_start = {.finished = true}, .policy_version = 2};
  stage.SaveCheckpoint({}, progress);
  const absl::Status status = begin(RunMode::kTrain);
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()), Catch::StartsWith("trainer.grpo.kl_weight is 0.1, and ") &&
                                                Catch::Contains("--set trainer.grpo.kl_weight=0"));
  CHECK(begin(RunMode::kColdStart).ok());
  CHECK(stage.Begin({.mode = RunMode::kExport}).ok());
  stage.SaveCheckpoint({}, progress, /*with_reference=*/true);
  CHECK(begin(RunMode::kTrain).ok());
  progress.policy_version = 0;  // the weights are still those after SFT
  stage.SaveCheckpoint({}, progress);
  CHECK(begin(RunMode::kTrain).ok());
}

TEST_CASE("an evaluation holds its own folder, an export none") {
  const Stage stage;
  CHECK(absl::IsNotFound(stage.Begin({.mode = RunMode::kEvaluate}).status()));
  CHECK_FALSE(fs::exists(stage.folder()));
  stage.SaveCheckpoint();
  const auto training = stage.Begin({.request = {.resume = true}});
  REQUIRE(training.ok());
  const auto evaluation = stage.Begin({.mode = RunMode::kEvaluate});
  REQUIRE(evaluation.ok());
  CHECK(absl::IsUnavailable(stage.Begin({.mode = RunMode::kEvaluate}).status()));
  CHECK(stage.Begin({.mode = RunMode::kExport}).ok());
}

TEST_CASE("what only reads a run refuses a flag that it would not heed") {
  const Stage stage;
  stage.SaveCheckpoint();
  for (const RunMode mode : {RunMode::kEvaluate, RunMode::kExport}) {
    const absl::Status resumed = stage.Begin({.mode = mode, .request = {.resume = true}}).status();
    CHECK(absl::IsInvalidArgument(resumed));
    CHECK_THAT(std::string(resumed.message()), Catch::Contains("--resume is for training"));
    const absl::Status overwritten = stage.Begin({.mode = mode, .request = {.overwrite = true}}).status();
    CHECK(absl::IsInvalidArgument(overwritten));
    CHECK_THAT(std::string(overwritten.message()), Catch::Contains("--overwrite is for training"));
  }
}

TEST_CASE("damaged checkpoints are named with the ways out") {
  const Stage stage;
  stage.SaveCheckpoint();
  const fs::path file = stage.folder() / "checkpoints" / "checkpoint_000001" / "progress.json";
  fs::resize_file(file, 1);
  const absl::Status status = stage.Begin({.request = {.resume = true}}).status();
  CHECK(absl::IsDataLoss(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains(file.string()) && Catch::Contains("--overwrite") && Catch::Contains("run.name"));
}

}  // namespace warpsmith
