// What a change of memory does to the free memory of a GPU, while other processes use it too.
#ifndef WARPSMITH_TESTS_GPU_FREE_MEMORY_H_
#define WARPSMITH_TESTS_GPU_FREE_MEMORY_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "core/base/check.h"

namespace warpsmith {

inline int64_t FreeBytes() {
  size_t free = 0, total = 0;
  WS_CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess);
  return static_cast<int64_t>(free);
}

// Bytes of the current GPU that `change` frees (below 0: takes) and `undo` takes back. Both are repeated, at most 50
// times, until a cycle leaves as much free as it found. None: no cycle did, because `undo` is not the inverse or other
// processes took or freed memory in each of them.
inline std::optional<int64_t> BytesFreedBy(const std::function<void()>& change,
                                           const std::function<void()>& undo) {
  constexpr int kCyclesMax = 50;
  for (int i = 0; i < kCyclesMax; ++i) {
    const int64_t before = FreeBytes();
    change();
    const int64_t changed = FreeBytes();
    undo();
    if (FreeBytes() == before) return changed - before;
  }
  return std::nullopt;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_GPU_FREE_MEMORY_H_
