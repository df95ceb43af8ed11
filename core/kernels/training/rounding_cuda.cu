#include <algorithm>

#include "core/kernels/training/rounding_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocksMax = 132 * 16;

__global__ void RoundingKernel(const float* values, int64_t size, __nv_bfloat16* rounded) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < size; i += step) {
    rounded[i] = __float2bfloat16_rn(values[i]);
  }
}

}  // namespace

cudaError_t LaunchRounding(const float* values, int64_t size, __nv_bfloat16* rounded, cudaStream_t stream) {
  if (size == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(std::min(kBlocksMax, (size + kThreads - 1) / kThreads));
  RoundingKernel<<<blocks, kThreads, 0, stream>>>(values, size, rounded);
  return cudaGetLastError();
}

}  // namespace warpsmith
