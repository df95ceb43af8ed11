#include "reward_service/server/read_ahead.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/build_info.h"
#include "core/base/file.h"
#include "core/base/unique_fd.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr size_t kBytes = 20 << 20;
constexpr size_t kPageBytes = 4096;

// Of this file, in the kernel's cache.
size_t NumPagesThere(const std::filesystem::path& file) {
  const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  void* const mapped = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  REQUIRE(mapped != MAP_FAILED);
  std::vector<unsigned char> pages(kBytes / kPageBytes);
  REQUIRE(mincore(mapped, kBytes, pages.data()) == 0);
  munmap(mapped, kBytes);
  return static_cast<size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

TEST_CASE("files are in the kernel's cache once they were read ahead, and missing ones harm nobody") {
  const TemporaryDirectory folder;
  const std::filesystem::path file = folder.path() / "library.so";
  REQUIRE(WriteFileAtomically(file, std::string(kBytes, 'x')).ok());
  {
    const UniqueFd fd(open(file.c_str(), O_RDWR | O_CLOEXEC));
    fsync(fd.get());
    posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  if (NumPagesThere(file) > 0) {
    WARN("skipped: files of this folder do not leave memory");
    return;
  }
  const ReadAhead ahead({folder.path() / "missing.so", file});
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (NumPagesThere(file) < kBytes / kPageBytes && absl::Now() < deadline)
    absl::SleepFor(absl::Milliseconds(5));
  CHECK(NumPagesThere(file) == kBytes / kPageBytes);
}

TEST_CASE("the libraries that are read ahead are Torch's") {
  CHECK(std::filesystem::exists(TorchLibraries(GetBuildInfo().torch_dir)[2]));
}

}  // namespace
}  // namespace warpsmith
