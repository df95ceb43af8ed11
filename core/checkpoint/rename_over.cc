#include "core/checkpoint/rename_over.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <system_error>

#include "core/base/file.h"

namespace warpsmith {

absl::Status RenameOver(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  // ENOTDIR: the name belongs to a file or a link.
  if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) {
    return ErrnoStatus("cannot rename to", to.string());
  }
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
    return ErrnoStatus("cannot replace", to.string());
  }
  std::error_code error;
  std::filesystem::remove_all(from, error);
  if (!error) return absl::OkStatus();
  errno = error.value();
  return ErrnoStatus("cannot remove", from.string());
}

}  // namespace warpsmith
