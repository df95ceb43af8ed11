// token_sampling.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_TOKEN_SAMPLING_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TOKEN_SAMPLING_CUDA_H_

#include <cuda_runtime_api.h>

#include "core/kernels/kernel_start.h"
#include "core/kernels/token_sampling.h"

namespace warpsmith {

// All pointers are device memory; 1 to 1,000,000 token ids. Agrees with the reference but for rounding: the token may
// be a neighbour's where the uniform number is within rounding of the edge between them, and an id within rounding of
// the edge of top-p or min-p may be kept or cut. A sample depends on its row, seed, draw, temperature and truncation
// alone. Costs one reading of a row and of 512 of its ids again; where it is truncated, again of each chunk of 512 ids
// whose largest logit might be kept, or some dozens of readings where more than 4,096 ids might be. Launches on
// `stream`, does not synchronise; returns the launch's error, cudaErrorInvalidValue for other sizes. Constant beside
// the former kernel: all arrays but the logits and what is written.
cudaError_t LaunchTokenSamples(const TokenSamples& samples, cudaStream_t stream,
                               KernelStart start = KernelStart::kAfterFormer);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TOKEN_SAMPLING_CUDA_H_
