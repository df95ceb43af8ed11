#include "core/kernels/multiprocessors.h"
#include "core/kernels/random_normals_cuda.h"
#include "core/kernels/stored_vectors.cuh"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksOfMultiprocessor = 16;

// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
__device__ uint64_t Mixed(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
  return word ^ (word >> 31);
}

// By Box and Muller, from 24 bits each.
template <typename T>
__global__ void RandomNormalsKernel(T* values, int64_t size, uint64_t seed, float deviation) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < size; i += step) {
    const uint64_t word = Mixed(seed * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(i));
    const float radius = sqrtf(-2.0f * __logf((static_cast<float>(word >> 40) + 0.5f) * 0x1p-24f));
    const float normal = radius * __cosf(static_cast<float>(word & 0xFFFFFF) * (6.2831853f * 0x1p-24f));
    const float value = RoundToStored<T>(normal * deviation);
    StoreStored(value == 0.0f ? deviation : value, values + i);
  }
}

}  // namespace

template <typename T>
cudaError_t LaunchRandomNormals(T* values, int64_t size, uint64_t seed, float deviation,
                                cudaStream_t stream) {
  int multiprocessors = 0;
  if (const cudaError_t error = CountMultiprocessors(&multiprocessors); error != cudaSuccess) return error;
  const auto blocks = static_cast<unsigned>(multiprocessors * kBlocksOfMultiprocessor);
  RandomNormalsKernel<<<blocks, kThreads, 0, stream>>>(values, size, seed, deviation);
  return cudaGetLastError();
}

template cudaError_t LaunchRandomNormals(__nv_bfloat16*, int64_t, uint64_t, float, cudaStream_t);
template cudaError_t LaunchRandomNormals(__half*, int64_t, uint64_t, float, cudaStream_t);
template cudaError_t LaunchRandomNormals(float*, int64_t, uint64_t, float, cudaStream_t);

}  // namespace warpsmith
