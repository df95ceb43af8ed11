// top_tokens.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_TOP_TOKENS_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TOP_TOKENS_CUDA_H_

#include <cuda_runtime_api.h>

#include "core/kernels/top_tokens.h"

namespace warpsmith {

// All pointers are device memory. Agrees with the reference but for rounding of log-probs. A block a sample reads its
// row twice, and once a token more where over 512 ids are as large as those that are wanted; of samples with a count
// of 0 nothing is read. Launches on `stream`, does not synchronise; returns the launch's error, cudaErrorInvalidValue
// for other sizes than token_sampling_cuda.h takes.
cudaError_t LaunchTopTokens(const TopTokens& top, cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TOP_TOKENS_CUDA_H_
