#include "core/kernels/bfloat16_vectors.cuh"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/reductions.cuh"
#include "core/kernels/residual_norm_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocksMax = 1 << 20;  // rows beyond are taken in turn

__device__ float RoundToStored(float value) { return __bfloat162float(__float2bfloat16_rn(value)); }

// Of the row that a thread holds: x, with the deltas added and stored.
__device__ void LoadSum(const ResidualNorm<__nv_bfloat16>& norm, int64_t at,
                        float (&values)[kBfloat16Vector]) {
  LoadVector(norm.x + at, values);
  if (norm.delta == nullptr) return;
  for (int64_t d = 0; d < norm.num_deltas; ++d) {
    float added[kBfloat16Vector];
    LoadVector(norm.delta + d * norm.rows * norm.size + at, added);
#pragma unroll
    for (int i = 0; i < kBfloat16Vector; ++i) values[i] += added[i];
  }
#pragma unroll
  for (int i = 0; i < kBfloat16Vector; ++i) values[i] = RoundToStored(values[i]);
  StoreVector(values, norm.x + at);
}

__device__ void StoreNormed(const ResidualNorm<__nv_bfloat16>& norm, int64_t row, int64_t column,
                            const Bfloat16Vector& weights, float (&values)[kBfloat16Vector], float scale) {
#pragma unroll
  for (int i = 0; i < kBfloat16Vector / 2; ++i) {
    const float2 weight = weights.Pair(i);
    values[2 * i] = values[2 * i] * scale * weight.x;
    values[2 * i + 1] = values[2 * i + 1] * scale * weight.y;
  }
  StoreVector(values, norm.y + row * norm.size + column);
}

// A block a row, which stays in registers between its two passes: kVectors a thread, size a multiple of 8 and at
// most kVectors * kThreads * 8.
template <int kVectors>
__global__ void VectorKernel(const ResidualNorm<__nv_bfloat16> norm) {
  __shared__ float partials[kThreads / kWarp];
  LetNextStart();
  Bfloat16Vector weights[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = (int64_t{v} * kThreads + threadIdx.x) * kBfloat16Vector;
    if (column < norm.size) weights[v] = *reinterpret_cast<const Bfloat16Vector*>(norm.weight + column);
  }
  WaitForFormer();
  for (int64_t row = blockIdx.x; row < norm.rows; row += gridDim.x) {
    float values[kVectors][kBfloat16Vector];
    float squares = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = (int64_t{v} * kThreads + threadIdx.x) * kBfloat16Vector;
      if (column >= norm.size) continue;
      LoadSum(norm, row * norm.size + column, values[v]);
#pragma unroll
      for (int i = 0; i < kBfloat16Vector; ++i) squares += values[v][i] * values[v][i];
    }
    const float mean = BlockSum<kThreads>(squares, partials) / static_cast<float>(norm.size);
    const float scale = rsqrtf(mean + norm.eps);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = (int64_t{v} * kThreads + threadIdx.x) * kBfloat16Vector;
      if (column < norm.size) StoreNormed(norm, row, column, weights[v], values[v], scale);
    }
  }
}

// Any other size, an element at a time; the second pass reads back what the same thread has stored.
__global__ void ElementKernel(const ResidualNorm<__nv_bfloat16> norm) {
  __shared__ float partials[kThreads / kWarp];
  LetNextStart();
  WaitForFormer();
  for (int64_t row = blockIdx.x; row < norm.rows; row += gridDim.x) {
    __nv_bfloat16* const x = norm.x + row * norm.size;
    float squares = 0.0f;
    for (int64_t i = threadIdx.x; i < norm.size; i += kThreads) {
      float value = __bfloat162float(x[i]);
      if (norm.delta != nullptr) {
        for (int64_t d = 0; d < norm.num_deltas; ++d) {
          value += __bfloat162float(norm.delta[(d * norm.rows + row) * norm.size + i]);
        }
        value = RoundToStored(value);
        x[i] = __float2bfloat16_rn(value);
      }
      squares += value * value;
    }
    const float mean = BlockSum<kThreads>(squares, partials) / static_cast<float>(norm.size);
    const float scale = rsqrtf(mean + norm.eps);
    for (int64_t i = threadIdx.x; i < norm.size; i += kThreads) {
      const float value = __bfloat162float(x[i]) * scale * __bfloat162float(norm.weight[i]);
      norm.y[row * norm.size + i] = __float2bfloat16_rn(value);
    }
  }
}

}  // namespace

// Which kernel runs depends on the size alone, so that a row's bits do not depend on how many there are.
cudaError_t LaunchResidualNorm(const ResidualNorm<__nv_bfloat16>& norm, cudaStream_t stream,
                               KernelStart start) {
  constexpr int64_t kPass = int64_t{kThreads} * kBfloat16Vector;
  if (norm.rows < 0 || norm.size < 1 || norm.num_deltas < 1) return cudaErrorInvalidValue;
  if (norm.rows == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(norm.rows < kBlocksMax ? norm.rows : kBlocksMax);
  if (norm.size % kBfloat16Vector != 0 || norm.size > 4 * kPass) {
    return StartKernel(start, ElementKernel, blocks, kThreads, 0, stream, norm);
  }
  if (norm.size <= kPass) return StartKernel(start, VectorKernel<1>, blocks, kThreads, 0, stream, norm);
  if (norm.size <= 2 * kPass) return StartKernel(start, VectorKernel<2>, blocks, kThreads, 0, stream, norm);
  return StartKernel(start, VectorKernel<4>, blocks, kThreads, 0, stream, norm);
}

}  // namespace warpsmith
