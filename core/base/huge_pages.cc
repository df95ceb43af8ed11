#include "core/base/huge_pages.h"

#include <sys/mman.h>

#include <cstddef>

namespace warpsmith {
namespace {

constexpr int64_t kPageBytes = 4096;
// MADV_COLLAPSE of <asm-generic/mman-common.h>, which older systems' headers lack.
constexpr int kCollapse = 25;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

void Unmap(uintptr_t from, uintptr_t to) {
  if (from < to) munmap(reinterpret_cast<void*>(from), to - from);
}

void TouchEvery(int64_t step, char* start, int64_t num_bytes) {
  for (int64_t offset = 0; offset < num_bytes; offset += step) {
    volatile char* byte = start + offset;
    *byte = *byte;
  }
}

}  // namespace

char* ReserveAligned(int64_t num_bytes) {
  const int64_t mapped_bytes = RoundUp(num_bytes, kPageBytes);
  const auto room = static_cast<size_t>(mapped_bytes + kHugePageBytes + 2 * kPageBytes);
  void* region = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(region);
  const auto start =
      static_cast<uintptr_t>(RoundUp(static_cast<int64_t>(begin) + kPageBytes, kHugePageBytes));
  Unmap(begin, start - kPageBytes);
  Unmap(start + static_cast<uintptr_t>(mapped_bytes + kPageBytes), begin + room);
  return reinterpret_cast<char*>(start);
}

void ReleaseAligned(char* start, int64_t num_bytes) {
  munmap(start - kPageBytes, static_cast<size_t>(RoundUp(num_bytes, kPageBytes) + 2 * kPageBytes));
}

void PopulateHuge(char* start, int64_t num_bytes) {
  // A huge page takes the place of small ones, of which one must be there.
  const int64_t huge_bytes = num_bytes / kHugePageBytes * kHugePageBytes;
  TouchEvery(kHugePageBytes, start, huge_bytes);
  if (huge_bytes > 0) (void)madvise(start, static_cast<size_t>(huge_bytes), kCollapse);
  TouchEvery(kPageBytes, start, num_bytes);
}

}  // namespace warpsmith
