// page_copy.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_PAGE_COPY_CUDA_H_
#define WARPSMITH_CORE_KERNELS_PAGE_COPY_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "core/kernels/page_copy.h"

namespace warpsmith {

// All pointers are device memory, `pages` aligned to 16 bytes; entry_size and plane_stride are multiples of 8, at
// most 65,535 planes. Launches on `stream`, does not synchronise; returns the launch's error,
// cudaErrorInvalidValue for other sizes.
cudaError_t LaunchPageCopies(const PageCopies<__nv_bfloat16>& copies, cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_PAGE_COPY_CUDA_H_
