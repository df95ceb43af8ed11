// At most one process works in a run's folder.
#ifndef WARPSMITH_TRAINER_RUN_FOLDER_RUN_LOCK_H_
#define WARPSMITH_TRAINER_RUN_FOLDER_RUN_LOCK_H_

#include <filesystem>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

// The lock on a folder, for as long as this lives. The kernel releases it when the process dies,
// however it dies. The file "lock" stays, for removing it would let two processes lock two files of
// one name.
class RunLock {
 public:
  // Locks `directory`, which is there. UNAVAILABLE at once, naming the folder and its holder, when
  // another process has the lock; the errors of ErrnoStatus when the folder cannot be written to.
  static absl::StatusOr<RunLock> Acquire(const std::filesystem::path& directory);

 private:
  explicit RunLock(UniqueFd file) : file_(std::move(file)) {}

  UniqueFd file_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_RUN_LOCK_H_
