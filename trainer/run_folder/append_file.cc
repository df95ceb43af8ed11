#include "trainer/run_folder/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr int64_t kFileBytesMax = int64_t{1} << 50;  // memory is the limit

// Size of the lines of `path` that have an end.
absl::StatusOr<int64_t> WholeLinesBytes(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  return static_cast<int64_t>(text.rfind('\n') + 1);  // npos + 1 is 0
}

}  // namespace

absl::StatusOr<AppendFile> AppendFile::Open(const std::filesystem::path& path, int64_t size) {
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus("cannot open", path.string());
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return ErrnoStatus("cannot stat", path.string());
  if (info.st_size < size) {
    ASSIGN_OR_RETURN(const int64_t whole, WholeLinesBytes(path));
    LogWarning(absl::StrCat(
        path.string(), " has ", info.st_size, " bytes, and the checkpoint knows of ", size,
        ": lines between are lost, for example to a power failure; the run goes on without them"));
    size = whole;
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

absl::Status AppendFile::Sync() {
  if (fsync(file_.get()) != 0) return ErrnoStatus("cannot sync", path_.string());
  return SyncDirectory(path_.parent_path());
}

}  // namespace warpsmith
