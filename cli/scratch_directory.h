// A private folder for sockets, gone with its owner.
#ifndef WARPSMITH_CLI_SCRATCH_DIRECTORY_H_
#define WARPSMITH_CLI_SCRATCH_DIRECTORY_H_

#include <filesystem>

#include "absl/status/statusor.h"

namespace warpsmith {

class ScratchDirectory {
 public:
  // A new folder under /tmp, readable by this user alone; its path has less than 40 bytes.
  static absl::StatusOr<ScratchDirectory> Create();

  ScratchDirectory(ScratchDirectory&& other) noexcept;
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::filesystem::path path);

  std::filesystem::path path_;  // empty once moved from
};

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_SCRATCH_DIRECTORY_H_
