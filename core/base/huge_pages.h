// Memory in huge pages: where small ones lie is luck, and can cost a memory-bound loop a quarter of its time.
#ifndef WARPSMITH_CORE_BASE_HUGE_PAGES_H_
#define WARPSMITH_CORE_BASE_HUGE_PAGES_H_

#include <cstdint>

namespace warpsmith {

inline constexpr int64_t kHugePageBytes = int64_t{2} << 20;

// Reserves addresses for `num_bytes`, rounded up to pages, from a huge page's boundary on, with a page on
// either side. They may not be touched until something is mapped there. Null when there is no room; errno tells
// why.
char* ReserveAligned(int64_t num_bytes);
// Ends it all, with what was mapped there.
void ReleaseAligned(char* start, int64_t num_bytes);

// Gives a mapping that begins at a huge page's boundary huge pages where the kernel makes some
// (MADV_COLLAPSE, since Linux 6.1), and makes every page present. Keeps what lies there.
void PopulateHuge(char* start, int64_t num_bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_HUGE_PAGES_H_
