// adamw.h on a GPU.
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_ADAMW_CUDA_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_ADAMW_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/kernels/adamw.h"

namespace warpsmith {

// A range of the flat buffers. All arrays have `size` elements.
template <typename T>
struct DeviceAdamW {
  AdamWOptions options;
  int64_t size = 0;
  float* gradient = nullptr;  // read, then zeroed
  float* parameter = nullptr;
  float* first_moment = nullptr;
  float* second_moment = nullptr;
  T* stored = nullptr;  // receives the parameter, rounded once; may be `parameter` if T is float
};

// T is __nv_bfloat16 or float. All pointers are device memory, aligned to 16 bytes; a size is a multiple of 8. Launches
// on `stream`, does not synchronise. Returns the launch's error, cudaErrorInvalidValue for another size.
template <typename T>
cudaError_t LaunchAdamW(const DeviceAdamW<T>& update, cudaStream_t stream);

// Parts that a sum of squares is made of, whatever the device: one double each.
inline constexpr int64_t kSquareParts = 1024;

// Adds the sum of squares of `values` to `*sum` in float64, in an order of `size` alone. `sum` and `parts`
// [kSquareParts] are device memory. Launches on `stream`, does not synchronise; returns the launch's error.
cudaError_t LaunchSumOfSquares(const float* values, int64_t size, double* parts, double* sum,
                               cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_ADAMW_CUDA_H_
