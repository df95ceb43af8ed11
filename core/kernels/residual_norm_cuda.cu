#include "core/kernels/kernel_start.cuh"
#include "core/kernels/reductions.cuh"
#include "core/kernels/residual_norm_cuda.h"
#include "core/kernels/stored_vectors.cuh"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocksMax = 1 << 20;  // rows beyond are taken in turn

// Of the row that a thread holds: x, with the deltas added and stored.
template <typename T>
__device__ void LoadSum(const ResidualNorm<T>& norm, int64_t at, float (&values)[kStoredVector]) {
  LoadVector(norm.x + at, values);
  if (norm.delta == nullptr) return;
  for (int64_t d = 0; d < norm.num_deltas; ++d) {
    float added[kStoredVector];
    LoadVector(norm.delta + d * norm.rows * norm.size + at, added);
#pragma unroll
    for (int i = 0; i < kStoredVector; ++i) values[i] += added[i];
  }
#pragma unroll
  for (int i = 0; i < kStoredVector; ++i) values[i] = RoundToStored<T>(values[i]);
  StoreVector(values, norm.x + at);
}

template <typename T>
__device__ void StoreNormed(const ResidualNorm<T>& norm, int64_t row, int64_t column,
                            const StoredVector<T>& weights, float (&values)[kStoredVector], float scale) {
  float weight[kStoredVector];
  Unpack(weights, weight);
#pragma unroll
  for (int i = 0; i < kStoredVector; ++i) values[i] = values[i] * scale * weight[i];
  StoreVector(values, norm.y + row * norm.size + column);
}

// A block a row, which stays in registers between its two passes: kVectors a thread, size a multiple of 8 and at
// most kVectors * kThreads * 8.
template <typename T, int kVectors>
__global__ void VectorKernel(const ResidualNorm<T> norm) {
  __shared__ float partials[kThreads / kWarp];
  LetNextStart();
  StoredVector<T> weights[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = (int64_t{v} * kThreads + threadIdx.x) * kStoredVector;
    if (column < norm.size) weights[v] = *reinterpret_cast<const StoredVector<T>*>(norm.weight + column);
  }
  WaitForFormer();
  for (int64_t row = blockIdx.x; row < norm.rows; row += gridDim.x) {
    float values[kVectors][kStoredVector];
    float squares = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = (int64_t{v} * kThreads + threadIdx.x) * kStoredVector;
      if (column >= norm.size) continue;
      LoadSum(norm, row * norm.size + column, values[v]);
#pragma unroll
      for (int i = 0; i < kStoredVector; ++i) squares += values[v][i] * values[v][i];
    }
    const float mean = BlockSum<kThreads>(squares, partials) / static_cast<float>(norm.size);
    const float scale = rsqrtf(mean + norm.eps);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = (int64_t{v} * kThreads + threadIdx.x) * kStoredVector;
      if (column < norm.size) StoreNormed(norm, row, column, weights[v], values[v], scale);
    }
  }
}

// Any other size, an element at a time; the second pass reads back what the same thread has stored.
template <typename T>
__global__ void ElementKernel(const ResidualNorm<T> norm) {
  __shared__ float partials[kThreads / kWarp];
  LetNextStart();
  WaitForFormer();
  for (int64_t row = blockIdx.x; row < norm.rows; row += gridDim.x) {
    T* const x = norm.x + row * norm.size;
    float squares = 0.0f;
    for (int64_t i = threadIdx.x; i < norm.size; i += kThreads) {
      float value = LoadStored(x + i);
      if (norm.delta != nullptr) {
        for (int64_t d = 0; d < norm.num_deltas; ++d) {
          value += LoadStored(norm.delta + (d * norm.rows + row) * norm.size + i);
        }
        value = RoundToStored<T>(value);
        StoreStored(value, x + i);
      }
      squares += value * value;
    }
    const float mean = BlockSum<kThreads>(squares, partials) / static_cast<float>(norm.size);
    const float scale = rsqrtf(mean + norm.eps);
    for (int64_t i = threadIdx.x; i < norm.size; i += kThreads) {
      StoreStored(LoadStored(x + i) * scale * LoadStored(norm.weight + i), norm.y + row * norm.size + i);
    }
  }
}

}  // namespace

// Which kernel runs depends on the size alone, so that a row's bits do not depend on how many there are.
template <typename T>
cudaError_t LaunchResidualNorm(const ResidualNorm<T>& norm, cudaStream_t stream, KernelStart start) {
  constexpr int64_t kPass = int64_t{kThreads} * kStoredVector;
  if (norm.rows < 0 || norm.size < 1 || norm.num_deltas < 1) return cudaErrorInvalidValue;
  if (norm.rows == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(norm.rows < kBlocksMax ? norm.rows : kBlocksMax);
  if (norm.size % kStoredVector != 0 || norm.size > 4 * kPass) {
    return StartKernel(start, ElementKernel<T>, blocks, kThreads, 0, stream, norm);
  }
  if (norm.size <= kPass) return StartKernel(start, VectorKernel<T, 1>, blocks, kThreads, 0, stream, norm);
  if (norm.size <= 2 * kPass)
    return StartKernel(start, VectorKernel<T, 2>, blocks, kThreads, 0, stream, norm);
  return StartKernel(start, VectorKernel<T, 4>, blocks, kThreads, 0, stream, norm);
}

template cudaError_t LaunchResidualNorm(const ResidualNorm<__nv_bfloat16>&, cudaStream_t, KernelStart);
template cudaError_t LaunchResidualNorm(const ResidualNorm<__half>&, cudaStream_t, KernelStart);
template cudaError_t LaunchResidualNorm(const ResidualNorm<float>&, cudaStream_t, KernelStart);

}  // namespace warpsmith
