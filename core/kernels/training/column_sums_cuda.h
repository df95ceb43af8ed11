// column_sums.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_COLUMN_SUMS_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_COLUMN_SUMS_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "core/kernels/training/column_sums.h"

namespace warpsmith {

// T is __nv_bfloat16 or float. All pointers are device memory, aligned to 8 bytes. The same inputs give the same bits
// on every GPU. Launches on `stream`, does not synchronise. Returns the launch's error, cudaErrorInvalidValue for a
// number of columns or a stride that is not a positive multiple of 2.
template <typename T>
cudaError_t LaunchColumnSums(const ColumnSums<T>& sums, cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_COLUMN_SUMS_CUDA_H_
