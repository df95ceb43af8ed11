// RMSNorm on a GPU; the formula and the CPU's version are KernelSet::rms_norm.
#ifndef WARPSMITH_CORE_KERNELS_RMS_NORM_CUDA_H_
#define WARPSMITH_CORE_KERNELS_RMS_NORM_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace warpsmith {

// y[r, i] = x[r, i] w[i] / sqrt(mean_i x[r, i]^2 + eps) for x, y [rows, size] and w [size], dense float32 in
// device memory. y may be x. Launches on `stream`, does not synchronise; returns the launch's error,
// cudaErrorInvalidValue for a size below 1.
cudaError_t LaunchRmsNorm(const float* x, const float* weight, int64_t rows, int64_t size, float eps,
                          float* y, cudaStream_t stream);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_RMS_NORM_CUDA_H_
