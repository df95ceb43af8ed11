// The checkpoints of a run: numbered folders, each there whole or not at all.
//
//   checkpoint_000010/        complete: every file as its manifest.json says
//   checkpoint_000011.tmp/    being written, or left by a process that died; never read
//
// A checkpoint is written into its .tmp folder, all of it is synced, the manifest is written last, and the
// folder is renamed. So after a crash at any moment the newest complete checkpoint is the last one committed.
#ifndef WARPSMITH_CORE_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
#define WARPSMITH_CORE_CHECKPOINT_CHECKPOINT_DIRECTORY_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint/file_manifest.h"

namespace warpsmith {

struct Checkpoint {
  int64_t number = 0;
  std::filesystem::path path;
};

// One process writes at a time; any number may read. Not thread-safe.
class CheckpointDirectory {
 public:
  static constexpr int64_t kNumberMax = 999'999'999'999;

  // Creates `root` if it is not there.
  static absl::StatusOr<CheckpointDirectory> Open(const std::filesystem::path& root);

  // An empty folder to write the files of checkpoint `number` into, folders among them as the caller likes.
  // What an earlier attempt left is removed.
  absl::StatusOr<std::filesystem::path> Begin(int64_t number);

  // Makes what was written since Begin(number) the checkpoint `number`; one that was there is replaced. Returns
  // when it is on disk. RESOURCE_EXHAUSTED when the disk is full: the checkpoints before are as they were.
  absl::StatusOr<Checkpoint> Commit(int64_t number);

  // Committed checkpoints, oldest first, whether whole or not.
  absl::StatusOr<std::vector<Checkpoint>> List() const;

  // The newest that is whole; damaged ones are passed over with a warning in the log. Nothing if
  // none was ever committed; DATA_LOSS naming the damaged files if there are some and none is
  // whole. kDigests reads all of it.
  absl::StatusOr<std::optional<Checkpoint>> NewestComplete(Verification verification) const;

  // Removes the folders of attempts that were never committed.
  absl::Status RemoveIncomplete();

  // Removes all but the newest `num_kept` (at least 1) committed checkpoints and those of the numbers `pinned`; those
  // that are not whole do not count and go.
  absl::Status Retain(int num_kept, const std::set<int64_t>& pinned = {});

  const std::filesystem::path& root() const { return root_; }

 private:
  explicit CheckpointDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  std::filesystem::path root_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
