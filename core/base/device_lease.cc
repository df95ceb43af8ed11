#include "core/base/device_lease.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/absl_view.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// flock(2) has no deadline, so it is tried again and again. All processes pause equally long: one that tries more often
// would get the lock sooner.
constexpr absl::Duration kPause = absl::Milliseconds(2);
constexpr int kOpenAttempts = 3;  // another process may make the file, or remove it, in between

// Any user may use the device, so any user may lock it. A link would lead a privileged process elsewhere.
absl::StatusOr<UniqueFd> OpenLockFile(const std::filesystem::path& path) {
  for (int i = 0; i < kOpenAttempts; ++i) {
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (fd.valid()) return fd;
    if (errno != ENOENT) break;
    fd.Reset(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT | O_EXCL, 0666));
    if (fd.valid()) {
      (void)fchmod(fd.get(), 0666);  // the process may have a narrower mask
      return fd;
    }
    if (errno != EEXIST) break;
  }
  return ErrnoStatus("open", path.string());
}

// Any process may have written there: only a number is repeated.
std::string HolderIn(int fd) {
  std::array<char, 16> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  const std::string holder(text.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
  const bool is_number = std::all_of(holder.begin(), holder.end(), absl::ascii_isdigit);
  return is_number && !holder.empty() ? holder : "unknown";
}

}  // namespace

DeviceLease::Held::~Held() {
  if (fd_ >= 0) (void)flock(fd_, LOCK_UN);
}

absl::StatusOr<DeviceLease> DeviceLease::Open(std::string_view device,
                                              const std::filesystem::path& directory) {
  const auto fits = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-'; };
  if (device.empty() || device.size() > 64 || !std::all_of(device.begin(), device.end(), fits)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a device's name has 1 to 64 letters, digits and hyphens, as a GPU's UUID: '",
                     AbslView(device), "'"));
  }
  const std::string stem = absl::StrCat("warpsmith-", AbslView(device));
  ASSIGN_OR_RETURN(UniqueFd held, OpenLockFile(directory / (stem + ".held")));
  ASSIGN_OR_RETURN(UniqueFd next, OpenLockFile(directory / (stem + ".next")));
  return DeviceLease(std::string(device), directory, std::move(held), std::move(next));
}

absl::Status DeviceLease::Lock(int fd, absl::Time deadline) const {
  for (;;) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
    if (errno != EWOULDBLOCK && errno != EINTR) return ErrnoStatus("lock", device_);
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(device_, " is in use by process ", HolderIn(held_.get())));
    }
    absl::SleepFor(kPause);
  }
}

bool DeviceLease::IsWanted() const {
  if (flock(next_.get(), LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  (void)flock(next_.get(), LOCK_UN);
  return false;
}

absl::StatusOr<DeviceLease::Held> DeviceLease::Take(absl::Time deadline) {
  RETURN_IF_ERROR(Lock(next_.get(), deadline));
  const Held next(next_.get());
  RETURN_IF_ERROR(Lock(held_.get(), deadline));
  Held held(held_.get());
  const std::string holder = absl::StrCat(getpid());
  if (ftruncate(held_.get(), 0) == 0) {
    (void)!pwrite(held_.get(), holder.data(), holder.size(), 0);  // for messages alone
  }
  return held;
}

}  // namespace warpsmith
