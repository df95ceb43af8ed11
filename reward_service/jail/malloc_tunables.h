// How malloc behaves in the referee, the oracles and the jails.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_MALLOC_TUNABLES_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_MALLOC_TUNABLES_H_

namespace warpsmith {

// An environment variable (glibc manual, "Memory Allocation Tunables"; glibc 2.35 or later): freed memory
// stays with the process, in huge pages where the kernel gives them on request. Not by mmap_threshold: above
// 32 MiB glibc ignores it, and a fixed trim_threshold stops the threshold's own growth.
//
// And freed memory fits what is asked for next. Of an aligned block glibc cuts off up to 96 bytes on either
// side; were they kept in its caches of small blocks when the block is freed, the next aligned one of its size
// would lie elsewhere. Four operations on 4 MB have a heap of four results after two calls this way, and one of
// 17 after ten without.
inline constexpr char kMallocTunables[] =
    "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:"
    "glibc.malloc.trim_threshold=4294967296:glibc.malloc.top_pad=16777216:"
    "glibc.malloc.mxfast=0:glibc.malloc.tcache_count=2";

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_MALLOC_TUNABLES_H_
