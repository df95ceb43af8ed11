// Checkpoints of a run: whole or absent, with everything needed to go on to the bit.
#ifndef WARPSMITH_TRAINER_CHECKPOINT_STORE_H_
#define WARPSMITH_TRAINER_CHECKPOINT_STORE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/parameters.h"
#include "trainer/run_progress.h"

namespace warpsmith {

// Flat buffers under a name: "weights", "first_moment", "second_moment", "best", "reference".
struct NamedParameters {
  std::string name;
  Parameters* parameters = nullptr;
};

// One directory a checkpoint, "000007" and so on, each with a safetensors file for each set of parameters and
// progress.json, which has the SHA-256 of each. A checkpoint is written beside its place, synced and renamed
// into it, so a crash leaves the old ones whole. Rank 0 writes; all ranks read.
class CheckpointStore {
 public:
  // Keeps the newest `num_kept` checkpoints in `directory`, which Save makes if need be.
  CheckpointStore(std::filesystem::path directory, int num_kept);

  // RESOURCE_EXHAUSTED when the disk is full: nothing is left behind then, and older checkpoints are
  // untouched.
  absl::Status Save(const RunProgress& progress, int64_t num_optimiser_steps,
                    const std::vector<NamedParameters>& tensors);

  // The newest checkpoint; nothing when there is none.
  absl::StatusOr<std::optional<std::filesystem::path>> Newest() const;

 private:
  absl::Status WriteInto(const std::filesystem::path& directory, const RunProgress& progress,
                         int64_t num_optimiser_steps, const std::vector<NamedParameters>& tensors) const;
  absl::StatusOr<std::vector<int64_t>> Numbers() const;

  const std::filesystem::path directory_;
  const int num_kept_;
};

struct LoadedProgress {
  RunProgress progress;
  int64_t num_optimiser_steps = 0;
};

// Reads what is not tensors. DATA_LOSS or INVALID_ARGUMENT, with file and reason, for a checkpoint that was
// cut or edited.
absl::StatusOr<LoadedProgress> LoadProgress(const std::filesystem::path& checkpoint);

// Reads one set of parameters into `tensors.parameters`, after checking its file's SHA-256 (DATA_LOSS) and
// that its layout is theirs (INVALID_ARGUMENT). NOT_FOUND when the checkpoint has no set of that name.
absl::Status LoadParameters(const std::filesystem::path& checkpoint, const NamedParameters& tensors);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_CHECKPOINT_STORE_H_
