#include "reward_service/jail/shared_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/huge_pages.h"

namespace warpsmith {
namespace {

// A buffer that fills a large part of one lies in a huge page alone.
constexpr int64_t kHugeFromBytes = kHugePageBytes / 8;

int64_t FileBytes(int64_t num_bytes) {
  if (num_bytes < kHugeFromBytes) return num_bytes;
  return (num_bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

absl::StatusOr<UniqueFd> MakeFile(int64_t num_bytes) {
  UniqueFd fd(memfd_create("warpsmith", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ErrnoStatus("memfd_create", "warpsmith");
  if (ftruncate(fd.get(), num_bytes) != 0) return ErrnoStatus("ftruncate", "memory file");
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedBuffer>> SharedBuffer::Create(int64_t num_bytes) {
  const int64_t file_bytes = FileBytes(num_bytes);
  absl::StatusOr<UniqueFd> fd = MakeFile(file_bytes);
  if (!fd.ok()) return fd.status();
  std::unique_ptr<SharedBuffer> buffer(new SharedBuffer);
  buffer->fd_ = *std::move(fd);
  buffer->num_bytes_ = num_bytes;
  buffer->read_only_fd_.Reset(
      open(absl::StrCat("/proc/self/fd/", buffer->fd_.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!buffer->read_only_fd_.valid()) return ErrnoStatus("open read-only", "memory file");
  if (fcntl(buffer->fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return ErrnoStatus("seal", "memory file");
  buffer->data_ = ReserveAligned(file_bytes);
  if (buffer->data_ == nullptr || mmap(buffer->data_, static_cast<size_t>(file_bytes), PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_FIXED, buffer->fd_.get(), 0) == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", num_bytes, " bytes"));
  }
  PopulateHuge(buffer->data_, file_bytes);
  return buffer;
}

absl::StatusOr<UniqueFd> SharedBuffer::SealedText(std::string_view text) {
  absl::StatusOr<UniqueFd> fd = MakeFile(0);
  if (!fd.ok()) return fd.status();
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(fd->get(), text.data() + written, text.size() - written);
    if (n <= 0) return ErrnoStatus("write", "memory file");
    written += static_cast<size_t>(n);
  }
  if (fcntl(fd->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return ErrnoStatus("seal", "memory file");
  }
  lseek(fd->get(), 0, SEEK_SET);
  return fd;
}

absl::StatusOr<std::string> SharedBuffer::ReadText(int fd, int64_t bytes_max) {
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus("fstat", "memory file");
  if (info.st_size > bytes_max) {
    return absl::InvalidArgumentError(absl::StrCat("a text has ", info.st_size, " bytes, over ", bytes_max));
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (pread(fd, text.data(), text.size(), 0) != info.st_size) return ErrnoStatus("read", "memory file");
  return text;
}

void SharedBuffer::Fill(unsigned char value) {
  std::memset(data_, value, static_cast<size_t>(num_bytes_));
  std::memset(data_ + num_bytes_, 0, static_cast<size_t>(FileBytes(num_bytes_) - num_bytes_));
}

SharedBuffer::~SharedBuffer() {
  if (data_ != nullptr) ReleaseAligned(data_, FileBytes(num_bytes_));
}

}  // namespace warpsmith
