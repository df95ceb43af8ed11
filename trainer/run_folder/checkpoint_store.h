// Checkpoints of a run: whole or absent, with everything needed to go on to the bit.
#ifndef WARPSMITH_TRAINER_RUN_FOLDER_CHECKPOINT_STORE_H_
#define WARPSMITH_TRAINER_RUN_FOLDER_CHECKPOINT_STORE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/training/model_trainer.h"
#include "trainer/run_folder/run_identity.h"
#include "trainer/run_folder/run_progress.h"

namespace warpsmith {

// Returns the file of a set of tensors in the folder `checkpoint`.
std::filesystem::path TensorPath(const std::filesystem::path& checkpoint, StateSet set);

// A directory a checkpoint, with a safetensors file of float32 buffers for each StateSet and progress.json;
// core/checkpoint sees to it that it is there whole or not at all. Rank 0 writes; all ranks read.
class CheckpointStore {
 public:
  // Keeps the newest `num_kept` checkpoints in `directory`, which Save makes if need be. `identity`
  // goes into each.
  CheckpointStore(std::filesystem::path directory, int num_kept, RunIdentity identity);
  void set_identity(RunIdentity identity) { identity_ = std::move(identity); }

  // Saves `progress` and the state of `trainer`, its reference where it has one. Removes first what an earlier save
  // that was cut short left. Keeps, beside the newest checkpoints, those of the best SFT weights of each of them.
  // RESOURCE_EXHAUSTED when the disk is full: older checkpoints are untouched.
  absl::Status Save(const RunProgress& progress, ModelTrainer& trainer);
  // Returns the number that the next checkpoint will have.
  absl::StatusOr<int64_t> NextNumber() const;
  // Returns the folder of checkpoint `number`, whole. NOT_FOUND; DATA_LOSS naming the damaged file.
  absl::StatusOr<std::filesystem::path> Find(int64_t number) const;
  // Returns the number of the checkpoint in `folder`; NOT_FOUND for none of this directory.
  absl::StatusOr<int64_t> NumberOf(const std::filesystem::path& folder) const;

  // The newest checkpoint whose files are all as they were written; nothing when there is none.
  // Reads all of it. DATA_LOSS naming the damaged files when there are checkpoints and none is
  // whole.
  absl::StatusOr<std::optional<std::filesystem::path>> Newest() const;

 private:
  const std::filesystem::path directory_;
  const int num_kept_;
  RunIdentity identity_;
};

struct LoadedProgress {
  RunProgress progress;
  int64_t num_optimiser_steps = 0;
  RunIdentity identity;  // empty in checkpoints of format 1
};

// Reads what is not tensors. INVALID_ARGUMENT for what Save did not write, FAILED_PRECONDITION for
// what a newer version wrote.
absl::StatusOr<LoadedProgress> LoadProgress(const std::filesystem::path& checkpoint);

// Reads one set of tensors into `trainer`. NOT_FOUND when the checkpoint has none, INVALID_ARGUMENT when its layout is
// another; the errors of ModelTrainer::Write.
absl::Status LoadState(const std::filesystem::path& checkpoint, StateSet set, ModelTrainer& trainer);
// Reads everything but the progress: weights, moments, number of steps.
absl::Status LoadTraining(const std::filesystem::path& checkpoint, int64_t num_optimiser_steps,
                          ModelTrainer& trainer);
// Reads the best SFT weights: those of `checkpoint`, or its file "best" where an earlier version wrote one.
absl::Status LoadBestWeights(const std::filesystem::path& checkpoint, ModelTrainer& trainer);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_CHECKPOINT_STORE_H_
