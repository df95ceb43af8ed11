#include "core/kernels/reductions.cuh"
#include "core/kernels/rms_norm_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocksMax = 1 << 20;  // rows beyond are taken in turn

// A block a row: the row is read twice, the second time from the cache.
__global__ void RmsNormKernel(const float* x, const float* weight, int64_t rows, int64_t size, float eps,
                              float* y) {
  __shared__ float partials[kThreads / kWarp];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* from = x + row * size;
    float squares = 0.0f;
    for (int64_t i = threadIdx.x; i < size; i += kThreads) squares += from[i] * from[i];
    const float scale = rsqrtf(BlockSum<kThreads>(squares, partials) / static_cast<float>(size) + eps);
    for (int64_t i = threadIdx.x; i < size; i += kThreads) y[row * size + i] = from[i] * scale * weight[i];
  }
}

}  // namespace

cudaError_t LaunchRmsNorm(const float* x, const float* weight, int64_t rows, int64_t size, float eps,
                          float* y, cudaStream_t stream) {
  if (size < 1 || rows < 0) return cudaErrorInvalidValue;
  if (rows == 0) return cudaSuccess;
  const unsigned blocks = static_cast<unsigned>(rows < kBlocksMax ? rows : kBlocksMax);
  RmsNormKernel<<<blocks, kThreads, 0, stream>>>(x, weight, rows, size, eps, y);
  return cudaGetLastError();
}

}  // namespace warpsmith
