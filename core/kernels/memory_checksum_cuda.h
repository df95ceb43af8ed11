// MemoryChecksum of device memory.
#ifndef WARPSMITH_CORE_KERNELS_MEMORY_CHECKSUM_CUDA_H_
#define WARPSMITH_CORE_KERNELS_MEMORY_CHECKSUM_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/kernels/memory_checksum.h"

namespace warpsmith {

// Adds the checksum of the `bytes` at `memory`, whose first is that of word 0, to *checksum, in device memory; a caller
// begins with zeros. `memory` is aligned to 16 bytes; it may be another GPU's that is mapped here. Launches on
// `stream`, does not synchronise; returns the launch's error, cudaErrorInvalidValue for bytes below 0 or no multiple of
// 16.
cudaError_t LaunchMemoryChecksum(const void* memory, int64_t bytes, MemoryChecksum* checksum,
                                 cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_MEMORY_CHECKSUM_CUDA_H_
