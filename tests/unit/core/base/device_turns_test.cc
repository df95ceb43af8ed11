#include "core/base/device_turns.h"

#include <fcntl.h>
#include <sys/file.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/unique_fd.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

DeviceTurns TurnsOf(const TemporaryDirectory& folder, const std::vector<std::string>& devices) {
  std::vector<DeviceLease> leases;
  for (const std::string& device : devices) leases.push_back(*DeviceLease::Open(device, folder.path()));
  return DeviceTurns(std::move(leases));
}

}  // namespace

TEST_CASE("a turn is on all devices or on none") {
  const TemporaryDirectory folder;
  DeviceTurns both = TurnsOf(folder, {"GPU-a", "GPU-b"}), second = TurnsOf(folder, {"GPU-b"});
  REQUIRE(second.Take(absl::Now()).ok());
  CHECK(absl::IsDeadlineExceeded(both.Take(absl::Now())));
  CHECK_FALSE(both.held());
  CHECK(TurnsOf(folder, {"GPU-a"}).Take(absl::Now()).ok());  // was given up again
  second.Give();
  CHECK(both.Take(absl::Now()).ok());
  CHECK(both.held());
  CHECK(both.Take(absl::Now()).ok());  // has it already
  CHECK(absl::IsDeadlineExceeded(second.Take(absl::Now())));
}

TEST_CASE("a turn says that another process waits for one of its devices") {
  const TemporaryDirectory folder;
  DeviceTurns both = TurnsOf(folder, {"GPU-a", "GPU-b"});
  REQUIRE(both.Take(absl::Now()).ok());
  CHECK_FALSE(both.IsWanted());
  const UniqueFd next(open((folder.path() / "warpsmith-GPU-b.next").c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(flock(next.get(), LOCK_EX) == 0);
  CHECK(both.IsWanted());
}

TEST_CASE("without devices the turn is always there, and is wanted by no other process") {
  DeviceTurns none;
  CHECK(none.held());
  CHECK(none.Take(absl::Now()).ok());
  CHECK_FALSE(none.IsWanted());
}

}  // namespace warpsmith
