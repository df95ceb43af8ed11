// Checksums of weights in a GPU's memory, and copies of them, each with a deadline.
#ifndef WARPSMITH_CORE_MODEL_BUFFER_CHECKSUMS_CUDA_H_
#define WARPSMITH_CORE_MODEL_BUFFER_CHECKSUMS_CUDA_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/kernels/memory_checksum.h"
#include "core/model/parameter_layout.h"

namespace warpsmith {

// Of each buffer of `layout` in bfloat16 or float16, one behind the other, at `memory` on the current device, after
// work of the default stream. Where `from` is not null the buffers are copied from there to `memory` first. Both are
// aligned to 16 bytes. DEADLINE_EXCEEDED and INTERNAL: the device may still be at it, see MayStillRun;
// RESOURCE_EXHAUSTED.
absl::StatusOr<std::vector<MemoryChecksum>> ChecksumBuffers(const ParameterLayout& layout, std::byte* memory,
                                                            const std::byte* from, absl::Time deadline);

// Whether the memories of a call that failed so may not be given back, because the device may still use them.
inline bool MayStillRun(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsInternal(status);
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_BUFFER_CHECKSUMS_CUDA_H_
