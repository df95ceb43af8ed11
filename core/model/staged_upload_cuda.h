// Copies from the host to a GPU through pinned memory, filled by several threads.
#ifndef WARPSMITH_CORE_MODEL_STAGED_UPLOAD_CUDA_H_
#define WARPSMITH_CORE_MODEL_STAGED_UPLOAD_CUDA_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/model/staging_plan.h"

namespace warpsmith {

// Elements of one chunk: 4 MiB of bfloat16, at which a copy over PCIe is at its full rate.
inline constexpr int64_t kStagingElements = int64_t{2} << 20;

// Fills each of `chunks`, of at most kStagingElements, by `fill`, on at most 8 threads and no more than this process
// has cores, and copies it to element chunk.offset of `device_elements`, memory of GPU `device`: in 16 bits, or
// float32. Each thread has a stream and two pinned buffers: one is filled while the other is copied. Returns when all
// is copied: INTERNAL with CUDA's first error; DEADLINE_EXCEEDED where a copy is not done within a minute, and the
// device may still write then.
absl::Status UploadStaged(const std::vector<StagingChunk>& chunks, int device, uint16_t* device_elements,
                          absl::FunctionRef<void(const StagingChunk& chunk, uint16_t* staging)> fill);
absl::Status UploadStaged(const std::vector<StagingChunk>& chunks, int device, float* device_elements,
                          absl::FunctionRef<void(const StagingChunk& chunk, float* staging)> fill);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_STAGED_UPLOAD_CUDA_H_
