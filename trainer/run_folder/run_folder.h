// What a run's folder holds, and whether and how a run may begin in it.
#ifndef WARPSMITH_TRAINER_RUN_FOLDER_RUN_FOLDER_H_
#define WARPSMITH_TRAINER_RUN_FOLDER_RUN_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpsmith {

// What the user and the launcher asked for.
struct RunRequest {
  bool resume = false;
  bool overwrite = false;  // never with `resume`
  int restart_count = 0;   // attempts of the same launch before this one
  int restarts_max = 0;    // attempts that the launcher adds when a process dies; all get the same flags
};

struct RunFolderContents {
  // Names in the folder that a run left something in; none: there is no run.
  std::vector<std::string> results;
  bool has_checkpoint = false;  // committed, whether whole or not
  // A run makes it before its first record; without it, the run's checkpoints have been moved away.
  bool has_checkpoints_folder = false;
  // There are results that a run writes only after its first checkpoint.
  bool is_past_first_checkpoint = false;
};

enum class RunStart {
  kFresh,       // from the beginning: there is nothing, or nothing but records that are written again
  kOverwrite,   // from the beginning, once RemoveRun has been called
  kCheckpoint,  // from the newest whole checkpoint
};

// A folder that is not there holds nothing. Reads names and sizes only.
absl::StatusOr<RunFolderContents> ListRunFolder(const std::filesystem::path& directory);

// The rules of docs/training.md, "Start, continue, replace". `directory` is for messages.
// FAILED_PRECONDITION when a run is in the way or has lost its checkpoints, NOT_FOUND when there is
// no run to go on with; each with the ways out.
absl::StatusOr<RunStart> DecideRunStart(const std::filesystem::path& directory,
                                        const RunFolderContents& contents, const RunRequest& request);

// Removes what a run left: its results, TensorBoard events and report. Other files in the folder
// stay, logs and caches among them. However it is cut short, what stays is refused by --resume.
absl::Status RemoveRun(const std::filesystem::path& directory);

// RESOURCE_EXHAUSTED when the disk of `directory` has no room for the
// `checkpoint_bytes` that saving takes. What saves that were cut short left counts as room, and all that RemoveRun
// would free if `overwrite` is set.
absl::Status CheckRoom(const std::filesystem::path& directory, int64_t checkpoint_bytes, bool overwrite);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_RUN_FOLDER_H_
