#include "trainer/run_folder/run_lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {

TEST_CASE("a second lock on a folder is refused at once and names folder and holder") {
  TemporaryDirectory directory;
  auto first = RunLock::Acquire(directory.path());
  REQUIRE(first.ok());
  const absl::Status second = RunLock::Acquire(directory.path()).status();
  CHECK(absl::IsUnavailable(second));
  CHECK_THAT(std::string(second.message()),
             Catch::Contains(directory.path().string()) &&
                 Catch::Contains(absl::StrCat("is in use by process ", getpid(), " on ")));
}

TEST_CASE("a lock ends with its object, and with its process however that dies") {
  TemporaryDirectory directory;
  { REQUIRE(RunLock::Acquire(directory.path()).ok()); }
  CHECK(RunLock::Acquire(directory.path()).ok());

  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = RunLock::Acquire(directory.path());
    const char locked = lock.ok() ? 'y' : 'n';
    (void)!write(ready[1], &locked, 1);
    pause();
    _exit(0);
  }
  char locked = 0;
  REQUIRE(read(ready[0], &locked, 1) == 1);
  CHECK(locked == 'y');
  CHECK_THAT(std::string(RunLock::Acquire(directory.path()).status().message()),
             Catch::Contains(absl::StrCat("process ", child, " ")));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(RunLock::Acquire(directory.path()).ok());
}

TEST_CASE("a longer name of an earlier holder is not left behind") {
  TemporaryDirectory directory;
  REQUIRE(WriteFileAtomically(directory.path() / "lock", std::string(300, 'x')).ok());
  const auto lock = RunLock::Acquire(directory.path());
  REQUIRE(lock.ok());
  CHECK(ReadFile(directory.path() / "lock")->find('x', 40) == std::string::npos);
}

TEST_CASE("a folder that takes no file is an error with a way out") {
  TemporaryDirectory directory;
  const absl::Status status = RunLock::Acquire(directory.path() / "absent").status();
  CHECK(absl::IsNotFound(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("choose another run.directory"));
}

}  // namespace warpsmith
