#include "rollout_workers/lost_gpu.h"

#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

int ExitStatus(const absl::Status& lost) {
  const pid_t child = fork();
  if (child == 0) {
    ExitIfLost(lost);
    _exit(7);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST_CASE("a process whose GPU is lost ends with status 1, and any other goes on") {
  CHECK(ExitStatus(absl::UnavailableError("The GPU is lost")) == 1);
  CHECK(ExitStatus(absl::OkStatus()) == 7);
}

}  // namespace
}  // namespace warpsmith
