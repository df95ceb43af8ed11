#include "trainer/run_folder/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

constexpr int64_t kHolderBytesMax = 512;

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "an unknown host";
}

// `status` with the way out of a folder that takes no files.
absl::Status NotWritable(const absl::Status& status) {
  return {status.code(), absl::StrCat(status.message(),
                                      "; a run's folder must take files: mend that, or choose another "
                                      "run.directory")};
}

absl::Status InUse(const std::filesystem::path& directory) {
  const std::string holder = ReadFile(directory / "lock", kHolderBytesMax).value_or("");
  return absl::UnavailableError(absl::StrCat(directory.string(), " is in use by ",
                                             holder.empty() ? "another process" : Escape(holder, 512),
                                             "; wait until that has ended, or choose another run.name"));
}

}  // namespace

absl::StatusOr<RunLock> RunLock::Acquire(const std::filesystem::path& directory) {
  const std::string path = (directory / "lock").string();
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) return NotWritable(ErrnoStatus("cannot open", path));
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return InUse(directory);
    if (errno != EINTR) return NotWritable(ErrnoStatus("cannot lock", path));
  }
  const std::string holder = absl::StrCat("process ", getpid(), " on ", HostName());
  if (ftruncate(file.get(), 0) != 0 ||
      pwrite(file.get(), holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size())) {
    return NotWritable(ErrnoStatus("cannot write", path));
  }
  return RunLock(std::move(file));
}

}  // namespace warpsmith
