// A file that only grows, except when a run goes back to a checkpoint.
#ifndef WARPSMITH_TRAINER_RUN_FOLDER_APPEND_FILE_H_
#define WARPSMITH_TRAINER_RUN_FOLDER_APPEND_FILE_H_

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

// Every Append is one write to the end, so a reader never sees half of a line for longer than that. Not
// thread-safe.
class AppendFile {
 public:
  // Opens or creates `path` and cuts it to `size` bytes; what a run wrote after its last checkpoint
  // it writes again. A file that is shorter than that has lost lines: it goes on after its last
  // whole line, with a warning in the log.
  static absl::StatusOr<AppendFile> Open(const std::filesystem::path& path, int64_t size);

  absl::Status Append(std::string_view bytes);

  // Returns when all that was appended is on disk, and so is the file's name.
  absl::Status Sync();

  int64_t size() const { return size_; }

 private:
  AppendFile(std::filesystem::path path, UniqueFd file, int64_t size);

  std::filesystem::path path_;
  UniqueFd file_;
  int64_t size_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_APPEND_FILE_H_
