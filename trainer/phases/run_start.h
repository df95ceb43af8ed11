// The beginning of a run on all ranks: rank 0 takes its folder and decides, the others follow or
// all stop.
#ifndef WARPSMITH_TRAINER_PHASES_RUN_START_H_
#define WARPSMITH_TRAINER_PHASES_RUN_START_H_

#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/distributed/control_plane.h"
#include "trainer/configuration.h"
#include "trainer/phases/training.h"
#include "trainer/run_folder/run_folder.h"
#include "trainer/run_folder/run_identity.h"
#include "trainer/run_folder/run_lock.h"

namespace warpsmith {

struct BegunRun {
  RunStart start = RunStart::kFresh;
  std::optional<std::filesystem::path> checkpoint;  // to go on from, or to read; every rank has verified it
  RunIdentity identity;         // on rank 0, which writes it into checkpoints; empty on the others
  std::optional<RunLock> lock;  // on rank 0, of the folder that gets the records
};

// Takes and judges the run's folder; writes nothing there but the lock, and makes it if it is not
// there and the run may begin. Every rank of `control` calls it and gets the same outcome; a
// checkpoint counts only if each rank read the same bytes. Errors, none of which has touched the
// run: those of DecideRunStart, RunLock::Acquire and CheckRoom; DATA_LOSS when all checkpoints are
// damaged; FAILED_PRECONDITION for one of another run or of a newer format, or one that lacks the state
// that changed settings need; NOT_FOUND when an
// evaluation or an export finds none, and INVALID_ARGUMENT when it is given --resume or --overwrite.
absl::StatusOr<BegunRun> BeginRun(const Configuration& configuration, const TrainingOptions& options,
                                  std::string_view prompts_sha256, ControlPlane& control);

// Completes `run`, to be trained, with the reward formula's name that the reward services of its workers tell;
// empty: they tell none. INVALID_ARGUMENT when they tell several, FAILED_PRECONDITION when the run's checkpoint
// has another, both with the way out.
absl::Status SettleFormula(const std::set<std::string>& formulas, BegunRun& run);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_PHASES_RUN_START_H_
