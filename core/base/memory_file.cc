#include "core/base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {

absl::StatusOr<UniqueFd> MakeMemoryFile(int64_t num_bytes) {
  UniqueFd fd(memfd_create("warpsmith", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ErrnoStatus("memfd_create", "warpsmith");
  if (ftruncate(fd.get(), num_bytes) != 0) return ErrnoStatus("ftruncate", "memory file");
  return fd;
}

absl::Status SealMemoryFile(int fd) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  return fcntl(fd, F_ADD_SEALS, kSeals) == 0 ? absl::OkStatus() : ErrnoStatus("seal", "memory file");
}

absl::StatusOr<UniqueFd> SealedMemoryFile(std::string_view text) {
  ASSIGN_OR_RETURN(UniqueFd fd, MakeMemoryFile());
  for (size_t written = 0; written < text.size();) {
    const ssize_t n =
        pwrite(fd.get(), text.data() + written, text.size() - written, static_cast<off_t>(written));
    if (n <= 0) return ErrnoStatus("write", "memory file");
    written += static_cast<size_t>(n);
  }
  RETURN_IF_ERROR(SealMemoryFile(fd.get()));
  return fd;
}

absl::StatusOr<std::string> ReadMemoryFile(int fd, int64_t bytes_max) {
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus("fstat", "memory file");
  if (info.st_size > bytes_max) {
    return absl::InvalidArgumentError(absl::StrCat("a text has ", info.st_size, " bytes, over ", bytes_max));
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (pread(fd, text.data(), text.size(), 0) != info.st_size) return ErrnoStatus("read", "memory file");
  return text;
}

}  // namespace warpsmith
