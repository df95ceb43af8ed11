#include "core/kernels/reductions.cuh"
#include "core/kernels/stored_vectors.cuh"
#include "core/kernels/training/column_sums_cuda.h"
#include "core/kernels/training/norm_gradient_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kPass = int64_t{kThreads} * kStoredVector;
constexpr int kVectorsMax = 4;

// A row at a time stays in registers; the block's sum of the weight's gradient too, over its rows in order.
template <typename T, int kVectors>
__global__ void NormGradientKernel(const NormGradient<T> g) {
  __shared__ float partials[kThreads / kWarp];
  float weight[kVectors][kStoredVector], sums[kVectors][kStoredVector] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = v * kPass + threadIdx.x * kStoredVector;
    if (column < g.size) LoadVector(g.weight + column, weight[v]);
  }
  for (int64_t row = blockIdx.x; row < g.rows; row += gridDim.x) {
    float x[kVectors][kStoredVector], dy[kVectors][kStoredVector];
    float squares = 0.0f, products = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = v * kPass + threadIdx.x * kStoredVector;
      if (column >= g.size) continue;
      LoadVector(g.x + row * g.size + column, x[v]);
      LoadVector(g.y_grad + row * g.size + column, dy[v]);
#pragma unroll
      for (int i = 0; i < kStoredVector; ++i) {
        squares += x[v][i] * x[v][i];
        products += weight[v][i] * dy[v][i] * x[v][i];
      }
    }
    const auto size = static_cast<float>(g.size);
    const float scale = rsqrtf(BlockSum<kThreads>(squares, partials) / size + g.eps);
    const float pull = BlockSum<kThreads>(products, partials) * scale * scale * scale / size;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = v * kPass + threadIdx.x * kStoredVector;
      if (column >= g.size) continue;
      float x_grad[kStoredVector];
      LoadVector(g.x_grad + row * g.size + column, x_grad);
#pragma unroll
      for (int i = 0; i < kStoredVector; ++i) {
        x_grad[i] += scale * weight[v][i] * dy[v][i] - x[v][i] * pull;
        sums[v][i] += dy[v][i] * x[v][i] * scale;
        x[v][i] *= scale * weight[v][i];
      }
      StoreVector(x_grad, g.x_grad + row * g.size + column);
      if (g.y != nullptr) StoreVector(x[v], g.y + row * g.size + column);
    }
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = v * kPass + threadIdx.x * kStoredVector;
    if (column < g.size) StoreVector(sums[v], g.parts + blockIdx.x * g.size + column);
  }
}

template <typename T, int kVectors>
void Start(const NormGradient<T>& g, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(NumGradientParts(g.rows));
  NormGradientKernel<T, kVectors><<<blocks, kThreads, 0, stream>>>(g);
}

}  // namespace

template <typename T>
cudaError_t LaunchNormGradient(const NormGradient<T>& g, cudaStream_t stream) {
  const bool size_fits = g.size > 0 && g.size % kStoredVector == 0 && g.size <= kVectorsMax * kPass;
  if (!size_fits || g.rows < 0) return cudaErrorInvalidValue;
  if (g.rows == 0) return cudaSuccess;
  if (g.size <= kPass) {
    Start<T, 1>(g, stream);
  } else if (g.size <= 2 * kPass) {
    Start<T, 2>(g, stream);
  } else {
    Start<T, kVectorsMax>(g, stream);
  }
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  return LaunchColumnSums<float>({NumGradientParts(g.rows), g.size, g.parts, g.weight_grad}, stream);
}

template cudaError_t LaunchNormGradient(const NormGradient<__nv_bfloat16>&, cudaStream_t);
template cudaError_t LaunchNormGradient(const NormGradient<float>&, cudaStream_t);

}  // namespace warpsmith
