// How much of the host's memory is to be had.
#ifndef WARPSMITH_CORE_BASE_AVAILABLE_MEMORY_H_
#define WARPSMITH_CORE_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <filesystem>

namespace warpsmith {

// Bytes that processes can take without swapping, as /proc/meminfo estimates them, or what the group of this process
// is allowed beside what it has (memory.max of cgroup v2, which containers have), where that is less. 0 where neither
// can be read. `root` is for tests.
int64_t AvailableMemory(const std::filesystem::path& root = "/");

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_AVAILABLE_MEMORY_H_
