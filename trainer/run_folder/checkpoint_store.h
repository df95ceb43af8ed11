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
#include "core/model/parameters.h"
#include "trainer/run_folder/run_identity.h"
#include "trainer/run_folder/run_progress.h"

namespace warpsmith {

// Flat buffers under a name: "weights", "first_moment", "second_moment", "best", "reference".
struct NamedParameters {
  std::string name;
  Parameters* parameters = nullptr;
};

inline constexpr char kReferenceTensors[] = "reference";

// The file of the tensors `name` in the folder `checkpoint`.
std::filesystem::path TensorPath(const std::filesystem::path& checkpoint, const std::string& name);

// A directory a checkpoint, with a safetensors file for each set of parameters and progress.json;
// core/checkpoint sees to it that it is there whole or not at all. Rank 0 writes; all ranks read.
class CheckpointStore {
 public:
  // Keeps the newest `num_kept` checkpoints in `directory`, which Save makes if need be. `identity`
  // goes into each.
  CheckpointStore(std::filesystem::path directory, int num_kept, RunIdentity identity);
  void set_identity(RunIdentity identity) { identity_ = std::move(identity); }

  // Removes what an earlier save that was cut short left, first. RESOURCE_EXHAUSTED when the disk is
  // full: older checkpoints are untouched.
  absl::Status Save(const RunProgress& progress, int64_t num_optimiser_steps,
                    const std::vector<NamedParameters>& tensors);

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

// Reads one set of parameters into `tensors.parameters`. NOT_FOUND when the checkpoint has none of that name,
// INVALID_ARGUMENT when its layout is another.
absl::Status LoadParameters(const std::filesystem::path& checkpoint, const NamedParameters& tensors);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_CHECKPOINT_STORE_H_
