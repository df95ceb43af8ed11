#include "trainer/phases/run_start.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/file_manifest.h"
#include "core/model/model_config.h"
#include "nlohmann/json.hpp"
#include "trainer/run_folder/checkpoint_store.h"
#include "trainer/update/agreement.h"

namespace warpsmith {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

absl::Status MakeDirectory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (!error) return absl::OkStatus();
  errno = error.value();
  const absl::Status status = ErrnoStatus("cannot make the folder", directory.string());
  return {status.code(), absl::StrCat(status.message(), "; choose another run.directory")};
}

absl::Status WithWaysOut(const absl::Status& status, const std::string& ways_out) {
  return {status.code(), absl::StrCat(status.message(), "; ", ways_out)};
}

absl::Status OfAnotherRun(const fs::path& checkpoint, const absl::Status& status,
                          const std::string& ways_out) {
  return WithWaysOut(
      {status.code(), absl::StrCat(checkpoint.string(), " is of another run: ", status.message())}, ways_out);
}

// Weights and two moments, and the reference model of a KL term. While SFT lasts the checkpoint of its best weights is
// kept beside the newest.
int64_t CheckpointBytes(const Configuration& configuration) {
  const int num_sets = configuration.grpo.loss.kl_weight > 0 ? 4 : 3;
  const int num_best = configuration.data.cold_start.empty() ? 0 : 3;
  return CountParameters(configuration.model.config) * int64_t{sizeof(float)} * (num_sets + num_best);
}

absl::Status CheckMoments(const ColdStartSection& options, const ColdStartProgress& progress) {
  const std::string present = MatrixUpdateName(options.matrix_update);
  const bool are_used = !progress.finished && !progress.matrix_update.empty();
  if (!are_used || progress.matrix_update == present) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("trainer.cold_start.matrix_update is ", present, ", there it is ", progress.matrix_update,
                   ": the moments of one optimiser are not those of another; go on with --set "
                   "trainer.cold_start.matrix_update=",
                   progress.matrix_update, ", or start a run of another run.name"));
}

// Before the first update of GRPO the weights themselves are the reference.
absl::Status CheckReference(const Configuration& configuration, const fs::path& checkpoint,
                            const RunProgress& progress) {
  std::error_code ignored;
  const bool is_needed =
      configuration.grpo.loss.kl_weight > 0 && progress.cold_start.finished && progress.policy_version > 0;
  if (!is_needed || fs::exists(TensorPath(checkpoint, StateSet::kReference), ignored))
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "trainer.grpo.kl_weight is ", configuration.grpo.loss.kl_weight, ", and ", checkpoint.string(),
      " lacks the weights after SFT that it measures from, for it was 0 "
      "before; go on with --set trainer.grpo.kl_weight=0, or start a run of another run.name"));
}

// What rank 0 does alone.
class Decision {
 public:
  Decision(const Configuration& configuration, const TrainingOptions& options, BegunRun* run)
      : configuration_(configuration),
        options_(options),
        directory_(configuration.run.directory),
        run_(*run) {}

  absl::Status Decide() {
    const bool only_reads = options_.mode == RunMode::kEvaluate || options_.mode == RunMode::kExport;
    return only_reads ? DecideReading() : DecideTraining();
  }

 private:
  absl::Status DecideTraining() {
    std::error_code ignored;
    if (!fs::exists(directory_, ignored)) {
      RETURN_IF_ERROR(DecideRunStart(directory_, {}, options_.request).status());
    }
    RETURN_IF_ERROR(Lock(directory_));
    ASSIGN_OR_RETURN(const RunFolderContents contents, ListRunFolder(directory_));
    ASSIGN_OR_RETURN(run_.start, DecideRunStart(directory_, contents, options_.request));
    if (run_.start == RunStart::kCheckpoint) {
      RETURN_IF_ERROR(
          FindCheckpoint("put the files back from a copy, or give the run up: --overwrite removes it, "
                         "another run.name leaves it alone"));
      RETURN_IF_ERROR(CheckIdentity("", "go on with that run's values, or start a run of another run.name"));
      RETURN_IF_ERROR(CheckState());
    } else if (options_.request.resume) {
      LogWarning(
          absl::StrCat(directory_.string(), " has no checkpoint yet: the run begins at its beginning"));
    }
    return CheckRoom(directory_, CheckpointBytes(configuration_), run_.start == RunStart::kOverwrite);
  }

  absl::Status DecideReading() {
    if (options_.request.resume) return RefuseFlag("--resume");
    if (options_.request.overwrite) return RefuseFlag("--overwrite");
    run_.start = RunStart::kCheckpoint;
    RETURN_IF_ERROR(FindCheckpoint("put the files back from a copy"));
    RETURN_IF_ERROR(CheckIdentity("model.", "give the configuration of that run"));
    return options_.mode == RunMode::kEvaluate ? Lock(directory_ / "evaluation") : absl::OkStatus();
  }

  static absl::Status RefuseFlag(const char* flag) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " is for training; --mode eval and --mode export read the newest checkpoint: leave it out"));
  }

  absl::Status Lock(const fs::path& directory) {
    RETURN_IF_ERROR(MakeDirectory(directory));
    ASSIGN_OR_RETURN(run_.lock, RunLock::Acquire(directory));
    return absl::OkStatus();
  }

  absl::Status FindCheckpoint(const std::string& ways_out) {
    const fs::path checkpoints = directory_ / "checkpoints";
    absl::StatusOr<std::optional<fs::path>> newest = CheckpointStore(checkpoints, 1, {}).Newest();
    if (absl::IsDataLoss(newest.status())) return WithWaysOut(newest.status(), ways_out);
    RETURN_IF_ERROR(newest.status());
    run_.checkpoint = *std::move(newest);
    if (run_.checkpoint.has_value()) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("there is no checkpoint in ", checkpoints.string(),
                                            "; check run.name and run.directory"));
  }

  absl::Status CheckIdentity(const std::string& prefix, const std::string& ways_out) {
    ASSIGN_OR_RETURN(const LoadedProgress loaded, LoadProgress(*run_.checkpoint));
    const absl::Status status = CompareIdentities(run_.identity, loaded.identity, prefix);
    return status.ok() ? status : OfAnotherRun(*run_.checkpoint, status, ways_out);
  }

  // That what the checkpoint has besides weights is what these settings need.
  absl::Status CheckState() {
    ASSIGN_OR_RETURN(const LoadedProgress loaded, LoadProgress(*run_.checkpoint));
    RETURN_IF_ERROR(CheckMoments(configuration_.cold_start, loaded.progress.cold_start));
    if (options_.mode != RunMode::kTrain) return absl::OkStatus();
    return CheckReference(configuration_, *run_.checkpoint, loaded.progress);
  }

  const Configuration& configuration_;
  const TrainingOptions& options_;
  const fs::path directory_;
  BegunRun& run_;
};

absl::StatusOr<std::string> ManifestDigest(const fs::path& checkpoint) {
  ASSIGN_OR_RETURN(const std::string manifest, ReadFile(checkpoint / kManifestFile));
  return Sha256Hex(manifest);
}

// What rank 0 decided, as text for the others.
absl::StatusOr<std::string> Encode(const BegunRun& run) {
  json decision = {{"start", static_cast<int>(run.start)}};
  if (run.checkpoint.has_value()) {
    decision["checkpoint"] = run.checkpoint->string();
    ASSIGN_OR_RETURN(decision["manifest"], ManifestDigest(*run.checkpoint));
  }
  return decision.dump();
}

absl::StatusOr<std::string> DecideOnRankZero(const Configuration& configuration,
                                             const TrainingOptions& options, std::string_view prompts_sha256,
                                             BegunRun& run) {
  ASSIGN_OR_RETURN(run.identity, IdentifyRun(configuration, prompts_sha256));
  RETURN_IF_ERROR(Decision(configuration, options, &run).Decide());
  return Encode(run);
}

// That this rank reads what rank 0 read, which verified it already.
absl::Status VerifyOwnView(const fs::path& checkpoint, const std::string& manifest_digest) {
  const absl::StatusOr<std::string> digest = ManifestDigest(checkpoint);
  if (!digest.ok() || *digest != manifest_digest) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rank 0 chose ", checkpoint.string(), " and this rank finds ",
        digest.ok() ? "another checkpoint there" : absl::StrCat("none: ", digest.status().message()),
        "; all ranks must see one run.directory, on a file system that they share"));
  }
  return VerifyManifest(checkpoint, Verification::kDigests);
}

}  // namespace

absl::StatusOr<BegunRun> BeginRun(const Configuration& configuration, const TrainingOptions& options,
                                  std::string_view prompts_sha256, ControlPlane& control) {
  BegunRun run;
  absl::StatusOr<std::string> own = std::string();
  if (control.rank() == 0) own = DecideOnRankZero(configuration, options, prompts_sha256, run);
  ASSIGN_OR_RETURN(const std::string text, ShareText(control, std::move(own)));
  if (control.rank() == 0) {
    RETURN_IF_ERROR(ShareStatus(control, absl::OkStatus()));
    return run;
  }
  const json decision = json::parse(text);
  run.start = static_cast<RunStart>(decision.at("start").get<int>());
  absl::Status own_view;
  if (decision.contains("checkpoint")) {
    run.checkpoint = decision.at("checkpoint").get<std::string>();
    own_view = VerifyOwnView(*run.checkpoint, decision.at("manifest").get<std::string>());
  }
  RETURN_IF_ERROR(ShareStatus(control, own_view));
  return run;
}

absl::Status SettleFormula(const std::set<std::string>& formulas, BegunRun& run) {
  if (formulas.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the workers' reward services have other default formulas: ", absl::StrJoin(formulas, ", "),
        "; choose one with --set ", kFormulaKey, "=NAME"));
  }
  if (formulas.begin()->empty()) return absl::OkStatus();
  run.identity[kFormulaKey] = *formulas.begin();
  if (!run.checkpoint.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const LoadedProgress loaded, LoadProgress(*run.checkpoint));
  const absl::Status status = CompareIdentities(run.identity, loaded.identity, kFormulaKey);
  if (status.ok()) return status;
  return OfAnotherRun(
      *run.checkpoint, status,
      absl::StrCat("the reward service has another default now: go on with --set ", kFormulaKey, "=",
                   loaded.identity.at(kFormulaKey), ", or start a run of another run.name"));
}

}  // namespace warpsmith
