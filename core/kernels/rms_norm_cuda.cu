#include "core/kernels/rms_norm_cuda.h"

namespace warpsmith {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;
constexpr int64_t kBlocksMax = 1 << 20;  // rows beyond are taken in turn

// Sum over the block, in every thread. `partials` holds a value a warp.
__device__ float BlockSum(float value, float* partials) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % kWarp == 0) partials[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = 0.0f;
  for (int warp = 0; warp < kThreads / kWarp; ++warp) value += partials[warp];
  __syncthreads();  // before the next row writes partials
  return value;
}

// A block a row: the row is read twice, the second time from the cache.
__global__ void RmsNormKernel(const float* x, const float* weight, int64_t rows, int64_t size, float eps,
                              float* y) {
  __shared__ float partials[kThreads / kWarp];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* from = x + row * size;
    float squares = 0.0f;
    for (int64_t i = threadIdx.x; i < size; i += kThreads) squares += from[i] * from[i];
    const float scale = rsqrtf(BlockSum(squares, partials) / static_cast<float>(size) + eps);
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
