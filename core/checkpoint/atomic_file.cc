#include "core/checkpoint/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "core/base/file.h"

namespace warpsmith {

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::filesystem::path& path) {
  std::string temporary = path.string() + ".XXXXXX";
  UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot create", temporary);
  fchmod(fd.get(), 0644);
  return AtomicFile(std::move(fd), std::move(temporary), path);
}

AtomicFile::AtomicFile(UniqueFd fd, std::string temporary, std::filesystem::path path)
    : fd_(std::move(fd)), temporary_(std::move(temporary)), path_(std::move(path)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      temporary_(std::exchange(other.temporary_, "")),
      path_(std::move(other.path_)) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status AtomicFile::Append(std::span<const std::byte> bytes) {
  constexpr size_t kWriteBytesMax = size_t{1} << 30;  // Linux writes at most 2 GiB at once
  while (!bytes.empty()) {
    const ssize_t written = write(fd_.get(), bytes.data(), std::min(bytes.size(), kWriteBytesMax));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus("cannot write", temporary_);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (fsync(fd_.get()) != 0) return ErrnoStatus("cannot sync", temporary_);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return ErrnoStatus("cannot rename to", path_.string());
  temporary_.clear();
  fd_.Reset();
  return SyncDirectory(path_.has_parent_path() ? path_.parent_path() : ".");
}

}  // namespace warpsmith
