// Writes a file too large to hold in memory so that it is there whole or not at all.
#ifndef WARPSMITH_CORE_CHECKPOINT_ATOMIC_FILE_H_
#define WARPSMITH_CORE_CHECKPOINT_ATOMIC_FILE_H_

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

// A temporary file beside the target, which Commit() syncs and renames; without Commit() it is removed. After
// an error only destruction is left. Not thread-safe.
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(const std::filesystem::path& path);

  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  // RESOURCE_EXHAUSTED when the disk is full.
  absl::Status Append(std::span<const std::byte> bytes);
  absl::Status Commit();

 private:
  AtomicFile(UniqueFd fd, std::string temporary, std::filesystem::path path);

  UniqueFd fd_;
  std::string temporary_;  // empty once there is nothing to remove
  std::filesystem::path path_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CHECKPOINT_ATOMIC_FILE_H_
