#include "core/kernels/first_not_finite_cuda.h"
#include "core/kernels/multiprocessors.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocksOfMultiprocessor = 8;  // all that it runs at once; each takes vectors in turn
constexpr int kVector = 8;
constexpr unsigned kExponent = 0x7F80;  // all ones: infinite or NaN

__device__ bool IsNotFinite(unsigned bits) { return (bits & kExponent) == kExponent; }

// 16 bytes a thread, in turn.
__global__ void FirstNotFiniteKernel(const uint4* vectors, int64_t count, unsigned long long* first) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    const uint4 vector = vectors[i];
    const unsigned words[] = {vector.x, vector.y, vector.z, vector.w};
    for (int word = 0; word < 4; ++word) {
      const bool low = IsNotFinite(words[word]), high = IsNotFinite(words[word] >> 16);
      if (!low && !high) continue;
      atomicMin(first, static_cast<unsigned long long>(i * kVector + word * 2 + (low ? 0 : 1)));
      return;  // later ones of this thread are larger
    }
  }
}

}  // namespace

cudaError_t LaunchFirstNotFinite(const __nv_bfloat16* values, int64_t size, unsigned long long* first,
                                 cudaStream_t stream) {
  if (size < 0 || size % kVector != 0) return cudaErrorInvalidValue;
  if (size == 0) return cudaSuccess;
  const int64_t vectors = size / kVector, wanted = (vectors + kThreads - 1) / kThreads;
  int multiprocessors = 0;
  if (const cudaError_t error = CountMultiprocessors(&multiprocessors); error != cudaSuccess) return error;
  const int64_t at_once = multiprocessors * kBlocksOfMultiprocessor;
  const auto blocks = static_cast<unsigned>(wanted < at_once ? wanted : at_once);
  FirstNotFiniteKernel<<<blocks, kThreads, 0, stream>>>(reinterpret_cast<const uint4*>(values), vectors,
                                                        first);
  return cudaGetLastError();
}

}  // namespace warpsmith
