#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace warpsmith {
namespace {

absl::StatusCode CodeOfErrno(int error) {
  switch (error) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case ENOSPC:
    case EDQUOT:
      return absl::StatusCode::kResourceExhausted;
    case EACCES:
    case EPERM:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus("cannot write", path);
    content.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(fd) != 0) return ErrnoStatus("cannot sync", path);
  return absl::OkStatus();
}

}  // namespace

absl::Status ErrnoStatus(std::string_view what, std::string_view path) {
  const int error = errno;
  return absl::Status(CodeOfErrno(error),
                      absl::StrCat(absl::string_view(what.data(), what.size()), " ",
                                   absl::string_view(path.data(), path.size()), ": ", std::strerror(error)));
}

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path, int64_t bytes_max) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot open", path.string());
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t num_read = read(fd.get(), buffer, sizeof(buffer));
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read < 0) return ErrnoStatus("cannot read", path.string());
    if (num_read == 0) return content;
    content.append(buffer, static_cast<size_t>(num_read));
    if (static_cast<int64_t>(content.size()) > bytes_max) {
      return absl::InvalidArgumentError(absl::StrCat(path.string(), " is larger than ", bytes_max, " bytes"));
    }
  }
}

absl::Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content) {
  std::string temporary = path.string() + ".XXXXXX";
  UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot create", temporary);
  fchmod(fd.get(), 0644);
  absl::Status status = WriteAll(fd.get(), content, temporary);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus("cannot rename to", path.string());
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncDirectory(path.has_parent_path() ? path.parent_path() : ".");
}

absl::Status SyncDirectory(const std::filesystem::path& directory) {
  UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot open", directory.string());
  if (fsync(fd.get()) != 0) return ErrnoStatus("cannot sync", directory.string());
  return absl::OkStatus();
}

std::filesystem::path ExecutableDirectory() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace warpsmith
