#include "reward_service/jail/shared_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/huge_pages.h"
#include "core/base/memory_file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// A buffer that fills a large part of one lies in a huge page alone.
constexpr int64_t kHugeFromBytes = kHugePageBytes / 8;

int64_t FileBytes(int64_t num_bytes) {
  if (num_bytes < kHugeFromBytes) return num_bytes;
  return (num_bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedBuffer>> SharedBuffer::Create(int64_t num_bytes) {
  const int64_t file_bytes = FileBytes(num_bytes);
  std::unique_ptr<SharedBuffer> buffer(new SharedBuffer);
  ASSIGN_OR_RETURN(buffer->fd_, MakeMemoryFile(file_bytes));
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

void SharedBuffer::Fill(unsigned char value) {
  std::memset(data_, value, static_cast<size_t>(num_bytes_));
  std::memset(data_ + num_bytes_, 0, static_cast<size_t>(FileBytes(num_bytes_) - num_bytes_));
}

SharedBuffer::~SharedBuffer() {
  if (data_ != nullptr) ReleaseAligned(data_, FileBytes(num_bytes_));
}

}  // namespace warpsmith
