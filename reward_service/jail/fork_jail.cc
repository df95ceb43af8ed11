#include "reward_service/jail/fork_jail.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/unique_fd.h"
#include "reward_service/sandbox/confinement.h"

namespace warpsmith {
namespace {

absl::Status Failed(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<ForkSide> ForkJail() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failed("pipe");
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t middle = fork();
  if (middle < 0) return Failed("fork");
  if (middle == 0) {
    writer.Reset();
    if (!SeparateNextChild().ok()) _exit(1);
    const pid_t jail = fork();
    if (jail != 0) _exit(jail < 0 ? 2 : 0);
    // The parent writes once the middle process is gone.
    char byte = 0;
    if (read(reader.get(), &byte, 1) != 1) _exit(3);
    return ForkSide::kJail;
  }
  int status = 0;
  while (waitpid(middle, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(absl::StrCat("making a jail failed at step ", WEXITSTATUS(status)));
  }
  if (write(writer.get(), "g", 1) != 1) return Failed("release the jail");
  return ForkSide::kParent;
}

}  // namespace warpsmith
