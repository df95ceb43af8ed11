// A file as memory.
#ifndef WARPSMITH_CORE_CHECKPOINT_MAPPED_FILE_H_
#define WARPSMITH_CORE_CHECKPOINT_MAPPED_FILE_H_

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

#include "absl/status/statusor.h"

namespace warpsmith {

// Mapped for reading, without copying. The file must not be cut while it is mapped: reading beyond its new
// end would end the process. (Files that we write are never changed, only replaced.)
class MappedFile {
 public:
  // NOT_FOUND; INTERNAL with errno. An empty file is no bytes.
  static absl::StatusOr<MappedFile> Open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CHECKPOINT_MAPPED_FILE_H_
