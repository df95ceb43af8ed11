// The copy in bfloat16 of values that are kept in float32, on a GPU: Bfloat16Bits (core/kernels/bfloat16.h) of each.
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_ROUNDING_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_ROUNDING_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace warpsmith {

// Both pointers are device memory of `size` elements. Launches on `stream`, does not synchronise; returns the launch's
// error.
cudaError_t LaunchRounding(const float* values, int64_t size, __nv_bfloat16* rounded, cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_ROUNDING_CUDA_H_
