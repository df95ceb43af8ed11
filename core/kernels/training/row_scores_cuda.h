// row_scores.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_ROW_SCORES_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_ROW_SCORES_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "core/kernels/training/row_scores.h"

namespace warpsmith {

// All pointers are device memory, those of logits and their gradient aligned to 16 bytes; row_stride is a multiple of
// 8. A row's result depends on that row alone. Launches on `stream`, does not synchronise. Returns the launch's error,
// cudaErrorInvalidValue for another stride, or one below num_token_ids.
cudaError_t LaunchRowScoring(const RowScoring& scoring, cudaStream_t stream);

// T is __nv_bfloat16 or float.
template <typename T>
cudaError_t LaunchRowScoringGradient(const RowScoringGradient<T>& gradient, cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_ROW_SCORES_CUDA_H_
