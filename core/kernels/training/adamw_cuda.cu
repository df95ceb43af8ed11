#include "core/kernels/kernel_set.h"
#include "core/kernels/reductions.cuh"
#include "core/kernels/stored_vectors.cuh"
#include "core/kernels/training/adamw_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocksMax = 1 << 20;  // vectors beyond are taken in turn

// Computes the formula of adamw.h.
template <typename T>
__global__ void AdamWKernel(const AdamWRange range, float* gradient, T* stored) {
  const int64_t step = int64_t{gridDim.x} * kThreads * kStoredVector;
  for (int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kStoredVector; i < range.size;
       i += step) {
    float g[kStoredVector], m[kStoredVector], v[kStoredVector], p[kStoredVector];
    LoadVector(range.gradient + i, g);
    LoadVector(range.first_moment + i, m);
    LoadVector(range.second_moment + i, v);
    LoadVector(range.parameter + i, p);
#pragma unroll
    for (int j = 0; j < kStoredVector; ++j) {
      g[j] *= range.gradient_scale;
      m[j] = range.beta1 * m[j] + (1.0f - range.beta1) * g[j];
      v[j] = range.beta2 * v[j] + (1.0f - range.beta2) * (g[j] * g[j]);
      const float denominator = sqrtf(v[j]) * range.inverse_sqrt_correction2 + range.epsilon;
      p[j] = p[j] * range.decay_factor - range.step_size * (m[j] / denominator);
      g[j] = 0.0f;
    }
    StoreVector(g, gradient + i);
    StoreVector(m, range.first_moment + i);
    StoreVector(v, range.second_moment + i);
    StoreVector(p, range.parameter + i);
    StoreVector(p, stored + i);
  }
}

__global__ void SquaresKernel(const float* values, int64_t size, double* parts) {
  __shared__ double partials[kThreads / kWarp];
  double sum = 0;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < size; i += kSquareParts * kThreads) {
    sum += double{values[i]} * values[i];
  }
  sum = BlockSum<kThreads>(sum, partials);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void AddPartsKernel(const double* parts, double* total) {
  __shared__ double partials[kThreads / kWarp];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < kSquareParts; i += kThreads) sum += parts[i];
  sum = BlockSum<kThreads>(sum, partials);
  if (threadIdx.x == 0) *total += sum;
}

}  // namespace

template <typename T>
cudaError_t LaunchAdamW(const DeviceAdamW<T>& update, cudaStream_t stream) {
  if (update.size < 0 || update.size % kStoredVector != 0) return cudaErrorInvalidValue;
  if (update.size == 0) return cudaSuccess;
  AdamWRange range = ConstantsOf(update.options);
  range.size = update.size;
  range.gradient = update.gradient;
  range.parameter = update.parameter;
  range.first_moment = update.first_moment;
  range.second_moment = update.second_moment;
  constexpr int64_t kBlockElements = int64_t{kThreads} * kStoredVector;
  const int64_t blocks = (update.size + kBlockElements - 1) / kBlockElements;
  AdamWKernel<T><<<static_cast<unsigned>(blocks < kBlocksMax ? blocks : kBlocksMax), kThreads, 0, stream>>>(
      range, update.gradient, update.stored);
  return cudaGetLastError();
}

template cudaError_t LaunchAdamW(const DeviceAdamW<__nv_bfloat16>&, cudaStream_t);
template cudaError_t LaunchAdamW(const DeviceAdamW<float>&, cudaStream_t);

cudaError_t LaunchSumOfSquares(const float* values, int64_t size, double* parts, double* sum,
                               cudaStream_t stream) {
  SquaresKernel<<<kSquareParts, kThreads, 0, stream>>>(values, size, parts);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  AddPartsKernel<<<1, kThreads, 0, stream>>>(parts, sum);
  return cudaGetLastError();
}

}  // namespace warpsmith
