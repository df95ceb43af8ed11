#include "reward_service/referee/process/other_gpus.h"

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// As driver 580 writes it.
void Name(const std::filesystem::path& folder, const char* bus, const char* uuid, int minor) {
  std::filesystem::create_directories(folder / bus);
  REQUIRE(
      WriteFileAtomically(folder / bus / "information",
                          absl::StrCat("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 16\nGPU UUID: \t ",
                                       uuid, "\nBus Location: \t ", bus, "\nDevice Minor: \t ", minor, "\n"))
          .ok());
}

TEST_CASE("a GPU's device is the one of its UUID, and the others are named") {
  const TemporaryDirectory folder;
  Name(folder.path(), "0000:00:06.0", "GPU-a", 1);
  Name(folder.path(), "0000:00:07.0", "GPU-b", 0);
  Name(folder.path(), "0000:00:08.0", "GPU-c", 12);
  CHECK(DevicesOfOtherGpus(folder.path(), "GPU-a") == std::set<std::string>{"nvidia0", "nvidia12"});
  CHECK(DevicesOfOtherGpus(folder.path(), "GPU-c") == std::set<std::string>{"nvidia0", "nvidia1"});
}

TEST_CASE("where the driver does not name the GPU, or nothing, no device is another's") {
  const TemporaryDirectory folder;
  CHECK(DevicesOfOtherGpus(folder.path(), "GPU-a").empty());
  CHECK(DevicesOfOtherGpus(folder.path() / "nowhere", "GPU-a").empty());
  Name(folder.path(), "0000:00:06.0", "GPU-b", 0);
  CHECK(DevicesOfOtherGpus(folder.path(), "MIG-a").empty());
}

}  // namespace
}  // namespace warpsmith
