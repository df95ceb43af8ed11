#include "core/base/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "core/base/unique_fd.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Whether something is mapped at an address: of free ones msync() says that they are free.
bool IsMapped(const char* address) { return msync(const_cast<char*>(address), 4096, MS_ASYNC) == 0; }

TEST_CASE("reserved addresses begin at a huge page and have a page on either side, and end whole") {
  constexpr int64_t kBytes = 3 * kHugePageBytes + 1;
  char* start = ReserveAligned(kBytes);
  REQUIRE(start != nullptr);
  CHECK(reinterpret_cast<uintptr_t>(start) % kHugePageBytes == 0);
  CHECK(IsMapped(start - 4096));
  CHECK(IsMapped(start + 3 * kHugePageBytes + 4096));
  ReleaseAligned(start, kBytes);
  CHECK_FALSE(IsMapped(start - 4096));
  CHECK_FALSE(IsMapped(start));
  CHECK_FALSE(IsMapped(start + 3 * kHugePageBytes + 4096));
}

TEST_CASE("addresses that no process has are refused") { CHECK(ReserveAligned(int64_t{1} << 60) == nullptr); }

TEST_CASE("populated memory is all there and keeps what lay in it") {
  constexpr int64_t kBytes = 2 * kHugePageBytes + 8192;
  const UniqueFd file(memfd_create("huge_pages_test", MFD_CLOEXEC));
  REQUIRE(file.valid());
  REQUIRE(ftruncate(file.get(), kBytes) == 0);
  char* start = ReserveAligned(kBytes);
  REQUIRE(mmap(start, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0) == start);
  start[kHugePageBytes + 77] = 'x';
  start[kBytes - 1] = 'y';
  PopulateHuge(start, kBytes);
  CHECK(start[kHugePageBytes + 77] == 'x');
  CHECK(start[kBytes - 1] == 'y');
  unsigned char present[kBytes / 4096];
  REQUIRE(mincore(start, kBytes, present) == 0);
  for (const unsigned char page : present) REQUIRE((page & 1) == 1);
  ReleaseAligned(start, kBytes);
}

}  // namespace
}  // namespace warpsmith
