#include "core/base/device_lease.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr char kDevice[] = "GPU-1f2e";

absl::Time Soon() { return absl::Now() + absl::Seconds(30); }

DeviceLease OpenIn(const TemporaryDirectory& directory) {
  absl::StatusOr<DeviceLease> lease = DeviceLease::Open(kDevice, directory.path());
  REQUIRE(lease.ok());
  return *std::move(lease);
}

TEST_CASE("a device that is held is refused with the process that has it, and free once that gives it up") {
  const TemporaryDirectory directory;
  DeviceLease one = OpenIn(directory), other = OpenIn(directory);
  {
    const absl::StatusOr<DeviceLease::Held> held = one.Take(Soon());
    REQUIRE(held.ok());
    CHECK(other.Take(absl::Now()).status() ==
          absl::DeadlineExceededError(absl::StrCat("GPU-1f2e is in use by process ", getpid())));
  }
  CHECK(other.Take(absl::Now()).ok());
  CHECK(one.Take(absl::Now()).ok());
}

TEST_CASE("whoever holds a device sees that another waits for it") {
  const TemporaryDirectory directory;
  DeviceLease one = OpenIn(directory), other = OpenIn(directory);
  std::thread waiting;
  {
    const absl::StatusOr<DeviceLease::Held> held = one.Take(Soon());
    REQUIRE(held.ok());
    CHECK_FALSE(one.IsWanted());
    waiting = std::thread([&] { CHECK(other.Take(Soon()).ok()); });
    for (const absl::Time end = Soon(); !one.IsWanted() && absl::Now() < end;)
      absl::SleepFor(absl::Milliseconds(1));
    CHECK(one.IsWanted());
  }
  waiting.join();
  const auto held = one.Take(Soon());
  CHECK_FALSE(one.IsWanted());
}

TEST_CASE("a lease that is opened again is another one of the same device") {
  const TemporaryDirectory directory;
  DeviceLease first = *DeviceLease::Open("0", directory.path());
  DeviceLease second = *first.OpenAgain();
  const auto held = first.Take(absl::Now());
  REQUIRE(held.ok());
  CHECK_FALSE(second.Take(absl::Now()).ok());
}

TEST_CASE("devices of different names are held apart") {
  const TemporaryDirectory directory;
  DeviceLease one = OpenIn(directory);
  absl::StatusOr<DeviceLease> other = DeviceLease::Open("GPU-2", directory.path());
  REQUIRE(other.ok());
  const auto held = one.Take(Soon());
  CHECK(other->Take(absl::Now()).ok());
}

TEST_CASE("what a process holds that is killed is free") {
  const TemporaryDirectory directory;
  DeviceLease lease = OpenIn(directory);
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    absl::StatusOr<DeviceLease> own = DeviceLease::Open(kDevice, directory.path());
    const auto held = own->Take(absl::InfiniteFuture());
    (void)!write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  CHECK(absl::IsDeadlineExceeded(lease.Take(absl::Now()).status()));
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(lease.Take(Soon()).ok());
}

TEST_CASE("who gives a device up and wants it again comes behind whoever waits") {
  const TemporaryDirectory directory;
  DeviceLease busy = OpenIn(directory), patient = OpenIn(directory);
  std::atomic<int> num_taken_again = 0;
  std::atomic<bool> done = false;
  int num_taken_before = -1;
  std::thread waiter;
  {
    const auto held = busy.Take(Soon());
    waiter = std::thread([&] {
      const auto had = patient.Take(Soon());
      num_taken_before = num_taken_again;
      done = true;
    });
    // Until it has its place.
    const UniqueFd place(open((directory.path() / "warpsmith-GPU-1f2e.next").c_str(), O_RDWR));
    while (flock(place.get(), LOCK_EX | LOCK_NB) == 0) {
      flock(place.get(), LOCK_UN);
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  while (!done) {
    if (busy.Take(Soon()).ok()) ++num_taken_again;
  }
  waiter.join();
  CHECK(num_taken_before == 0);
}

TEST_CASE("a name that is no file's, and a folder that is not there, are refused") {
  const TemporaryDirectory directory;
  for (const char* name : {"", "../GPU", "a b", "GPU/0"}) {
    CHECK(absl::IsInvalidArgument(DeviceLease::Open(name, directory.path()).status()));
  }
  CHECK(absl::IsNotFound(DeviceLease::Open(kDevice, directory.path() / "none").status()));
}

TEST_CASE("a link in the place of a lock file is not followed") {
  const TemporaryDirectory directory;
  const std::filesystem::path target = directory.path() / "precious";
  std::ofstream(target) << "content";
  std::filesystem::create_symlink(target, directory.path() / "warpsmith-GPU-1f2e.held");
  CHECK_FALSE(DeviceLease::Open(kDevice, directory.path()).ok());
}

}  // namespace
}  // namespace warpsmith
