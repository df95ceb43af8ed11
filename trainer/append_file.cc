#include "trainer/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"

namespace warpsmith {

absl::StatusOr<AppendFile> AppendFile::Open(const std::filesystem::path& path, int64_t size) {
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus("cannot open", path.string());
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return ErrnoStatus("cannot stat", path.string());
  if (info.st_size < size) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), " has ", info.st_size,
                                                   " bytes, the checkpoint saw ", size, "; was it edited?"));
  }
  if (ftruncate(file.get(), size) != 0) return ErrnoStatus("cannot cut", path.string());
  return AppendFile(path, std::move(file), size);
}

AppendFile::AppendFile(std::filesystem::path path, UniqueFd file, int64_t size)
    : path_(std::move(path)), file_(std::move(file)), size_(size) {}

absl::Status AppendFile::Append(std::string_view bytes) {
  size_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t count = write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus("cannot append to", path_.string());
    bytes.remove_prefix(count);
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
