#include "core/kernels/first_not_finite_cuda.h"
#include "core/kernels/multiprocessors.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocksOfMultiprocessor = 8;  // all that it runs at once; each takes vectors in turn
constexpr int kWords = 4;                       // of a vector

// Bits of the exponent in the upper 16 bits: where all are ones, the value is infinite or NaN. bfloat16 is the upper
// half of float32.
template <typename T>
constexpr unsigned kExponent = 0x7F80;
template <>
constexpr unsigned kExponent<__half> = 0x7C00;

template <typename T>
__device__ bool IsNotFinite(unsigned half) {
  return (half & kExponent<T>) == kExponent<T>;
}

// Place of the first of a word's values that is not finite; -1: none.
template <typename T>
__device__ int FirstOfWord(unsigned word) {
  if (sizeof(T) == sizeof(word)) return IsNotFinite<T>(word >> 16) ? 0 : -1;
  if (IsNotFinite<T>(word)) return 0;
  return IsNotFinite<T>(word >> 16) ? 1 : -1;
}

// 16 bytes a thread, in turn.
template <typename T>
__global__ void FirstNotFiniteKernel(const uint4* vectors, int64_t count, unsigned long long* first) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    const uint4 vector = vectors[i];
    const unsigned words[] = {vector.x, vector.y, vector.z, vector.w};
    for (int word = 0; word < kWords; ++word) {
      constexpr int kOfWord = sizeof(unsigned) / sizeof(T);
      const int found = FirstOfWord<T>(words[word]);
      if (found < 0) continue;
      atomicMin(first, static_cast<unsigned long long>((i * kWords + word) * kOfWord + found));
      return;  // later ones of this thread are larger
    }
  }
}

}  // namespace

template <typename T>
cudaError_t LaunchFirstNotFinite(const T* values, int64_t size, unsigned long long* first,
                                 cudaStream_t stream) {
  constexpr int kVector = sizeof(uint4) / sizeof(T);
  if (size < 0 || size % kVector != 0) return cudaErrorInvalidValue;
  if (size == 0) return cudaSuccess;
  const int64_t vectors = size / kVector, wanted = (vectors + kThreads - 1) / kThreads;
  int multiprocessors = 0;
  if (const cudaError_t error = CountMultiprocessors(&multiprocessors); error != cudaSuccess) return error;
  const int64_t at_once = multiprocessors * kBlocksOfMultiprocessor;
  const auto blocks = static_cast<unsigned>(wanted < at_once ? wanted : at_once);
  FirstNotFiniteKernel<T>
      <<<blocks, kThreads, 0, stream>>>(reinterpret_cast<const uint4*>(values), vectors, first);
  return cudaGetLastError();
}

template cudaError_t LaunchFirstNotFinite(const __nv_bfloat16*, int64_t, unsigned long long*, cudaStream_t);
template cudaError_t LaunchFirstNotFinite(const __half*, int64_t, unsigned long long*, cudaStream_t);
template cudaError_t LaunchFirstNotFinite(const float*, int64_t, unsigned long long*, cudaStream_t);

}  // namespace warpsmith
