#include "core/kernels/memory_checksum_cuda.h"
#include "core/kernels/multiprocessors.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocksOfMultiprocessor = 8;  // all that it runs at once; each takes vectors in turn
constexpr int kLoadsAtOnce = 4;                 // a thread's, so that enough bytes are under way
constexpr int64_t kVectorBytes = sizeof(ulonglong2);

__device__ void AddVector(ulonglong2 words, int64_t vector, MemoryChecksum* sum) {
  const auto index = static_cast<uint64_t>(vector) * 2;
  *sum = SumOf(*sum, ChecksumOfWord(words.x, index));
  *sum = SumOf(*sum, ChecksumOfWord(words.y, index + 1));
}

__device__ unsigned long long SumOfWarp(unsigned long long value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_down_sync(0xFFFFFFFFu, value, distance);
  }
  return value;
}

// 16 bytes a thread and load. The sums are modulo 2^64, so that their order does not matter.
__global__ void __launch_bounds__(kThreads)
    MemoryChecksumKernel(const ulonglong2* vectors, int64_t count, MemoryChecksum* checksum) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  MemoryChecksum sum;
  for (; i + (kLoadsAtOnce - 1) * step < count; i += kLoadsAtOnce * step) {
    ulonglong2 words[kLoadsAtOnce];
#pragma unroll
    for (int load = 0; load < kLoadsAtOnce; ++load) words[load] = __ldcs(vectors + i + load * step);
#pragma unroll
    for (int load = 0; load < kLoadsAtOnce; ++load) AddVector(words[load], i + load * step, &sum);
  }
  for (; i < count; i += step) AddVector(__ldcs(vectors + i), i, &sum);
  const unsigned long long first = SumOfWarp(sum.first), second = SumOfWarp(sum.second);
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(reinterpret_cast<unsigned long long*>(&checksum->first), first);
  atomicAdd(reinterpret_cast<unsigned long long*>(&checksum->second), second);
}

}  // namespace

cudaError_t LaunchMemoryChecksum(const void* memory, int64_t bytes, MemoryChecksum* checksum,
                                 cudaStream_t stream) {
  if (bytes < 0 || bytes % kVectorBytes != 0) return cudaErrorInvalidValue;
  if (bytes == 0) return cudaSuccess;
  const int64_t vectors = bytes / kVectorBytes, wanted = (vectors + kThreads - 1) / kThreads;
  int multiprocessors = 0;
  if (const cudaError_t error = CountMultiprocessors(&multiprocessors); error != cudaSuccess) return error;
  const int64_t at_once = multiprocessors * kBlocksOfMultiprocessor;
  const auto blocks = static_cast<unsigned>(wanted < at_once ? wanted : at_once);
  MemoryChecksumKernel<<<blocks, kThreads, 0, stream>>>(static_cast<const ulonglong2*>(memory), vectors,
                                                        checksum);
  return cudaGetLastError();
}

}  // namespace warpsmith
