#include "core/base/available_memory.h"

#include <filesystem>
#include <string>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

TEST_CASE("a host has memory to be had") {
  CHECK(AvailableMemory() > 0);
  CHECK(AvailableMemory("/nonexistent") == 0);
}

TEST_CASE("what a group is allowed counts, in a container and beside others") {
  const TemporaryDirectory folder;
  const auto& root = folder.path();
  const auto write = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root / file).parent_path());
    REQUIRE(WriteFileAtomically(root / file, text).ok());
  };
  write("proc/meminfo", "MemTotal:        2000 kB\nMemAvailable:    1000 kB\n");
  CHECK(AvailableMemory(root) == 1000 << 10);
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/memory.current", "5\n");
  CHECK(AvailableMemory(root) == 1000 << 10);
  write("sys/fs/cgroup/memory.max", "5000\n");
  CHECK(AvailableMemory(root) == 4995);
  write("proc/self/cgroup", "1:cpu:/x\n0::/slice/unit\n");
  write("sys/fs/cgroup/slice/unit/memory.max", "30\n");
  write("sys/fs/cgroup/slice/unit/memory.current", "40\n");
  CHECK(AvailableMemory(root) == 0);
}

}  // namespace
}  // namespace warpsmith
