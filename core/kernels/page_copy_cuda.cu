#include "core/kernels/page_copy_cuda.h"
#include "core/kernels/stored_vectors.cuh"

namespace warpsmith {
namespace {

constexpr int kThreads = 512;
constexpr int kAtOnce = 4;  // loads of a thread that are under way together: 32 KiB a block
constexpr int64_t kCopiesMax = 1 << 20;
constexpr int64_t kPlanesMax = 65535;  // of a grid's second extent

// A block a copy and plane. A pass loads before it stores: a compiler cannot know that the two pages are not one.
__global__ void __launch_bounds__(kThreads) PageCopyKernel(const PageCopies<__nv_bfloat16> copies) {
  const PageToCopy copy = copies.copies[blockIdx.x];
  const int vectors = static_cast<int>(copy.num_tokens * copies.entry_size / kStoredVector);
  const auto* const from =
      reinterpret_cast<const uint4*>(copies.pages + PageOffset(copies, blockIdx.y, copy.source));
  auto* const to = reinterpret_cast<uint4*>(copies.pages + PageOffset(copies, blockIdx.y, copy.destination));
  for (int first = static_cast<int>(threadIdx.x); first < vectors; first += kAtOnce * kThreads) {
    uint4 held[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i * kThreads < vectors) held[i] = from[first + i * kThreads];
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i * kThreads < vectors) to[first + i * kThreads] = held[i];
    }
  }
}

}  // namespace

cudaError_t LaunchPageCopies(const PageCopies<__nv_bfloat16>& copies, cudaStream_t stream) {
  const bool vectors = copies.entry_size % kStoredVector == 0 && copies.plane_stride % kStoredVector == 0;
  if (!vectors || copies.entry_size < 1 || copies.page_tokens < 1) return cudaErrorInvalidValue;
  if (copies.num_copies < 0 || copies.num_copies > kCopiesMax) return cudaErrorInvalidValue;
  if (copies.num_planes < 0 || copies.num_planes > kPlanesMax) return cudaErrorInvalidValue;
  if (copies.num_copies == 0 || copies.num_planes == 0) return cudaSuccess;
  const dim3 grid(static_cast<unsigned>(copies.num_copies), static_cast<unsigned>(copies.num_planes));
  PageCopyKernel<<<grid, kThreads, 0, stream>>>(copies);
  return cudaGetLastError();
}

}  // namespace warpsmith
