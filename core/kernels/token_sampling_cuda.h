// token_sampling.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_TOKEN_SAMPLING_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TOKEN_SAMPLING_CUDA_H_

#include <cuda_runtime_api.h>

#include "core/kernels/token_sampling.h"

namespace warpsmith {

// All pointers are device memory; 1 to 1,500,000 token ids. Agrees with the reference but for rounding: the token may
// be a neighbour's where the uniform number is within rounding of the edge between them. A sample depends on its row,
// seed, draw and temperature alone. Launches on `stream`, does not synchronise; returns the launch's error,
// cudaErrorInvalidValue for other sizes.
cudaError_t LaunchTokenSamples(const TokenSamples& samples, cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TOKEN_SAMPLING_CUDA_H_
