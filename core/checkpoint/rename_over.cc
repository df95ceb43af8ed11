#include "core/checkpoint/rename_over.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <system_error>

#include "core/base/file.h"

namespace warpsmith {
namespace {

absl::Status Remove(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return absl::OkStatus();
  errno = error.value();
  return ErrnoStatus("cannot remove", path.string());
}

// Where the file system cannot exchange two names, as NFS: for a moment neither folder has the name.
absl::Status RenameInTwoSteps(const std::filesystem::path& from, const std::filesystem::path& to) {
  const std::filesystem::path older = from.string() + ".older";
  if (rename(to.c_str(), older.c_str()) != 0) return ErrnoStatus("cannot replace", to.string());
  if (rename(from.c_str(), to.c_str()) == 0) return Remove(older);
  const absl::Status status = ErrnoStatus("cannot rename to", to.string());
  (void)rename(older.c_str(), to.c_str());  // the error that counts is the first
  return status;
}

}  // namespace

absl::Status RenameOver(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  // ENOTDIR: the name belongs to a file or a link.
  if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) {
    return ErrnoStatus("cannot rename to", to.string());
  }
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return Remove(from);
  if (errno == EINVAL || errno == ENOSYS) return RenameInTwoSteps(from, to);
  return ErrnoStatus("cannot replace", to.string());
}

}  // namespace warpsmith
