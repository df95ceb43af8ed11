#include "core/kernels/kernel_start.cuh"
#include "core/kernels/stored_vectors.cuh"
#include "core/kernels/swiglu.cuh"
#include "core/kernels/swiglu_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocksMax = 1 << 20;  // vectors beyond are taken in turn

// Eight columns of one row a thread. A row is whole blocks, so GateColumn holds for all rows taken as one as well.
template <typename T>
__global__ void SwiGluKernel(const SwiGlu<T> swiglu) {
  LetNextStart();
  WaitForFormer();
  const int64_t elements = swiglu.rows * swiglu.size;
  const int64_t step = int64_t{gridDim.x} * kThreads * kStoredVector;
  for (int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kStoredVector; i < elements; i += step) {
    float gate[kStoredVector], up[kStoredVector];
    LoadVector(swiglu.gate_up + GateColumn(i), gate);
    LoadVector(swiglu.gate_up + GateColumn(i) + kSwiGluBlock, up);
#pragma unroll
    for (int j = 0; j < kStoredVector; ++j) up[j] = SwiGluOf<T>(gate[j], up[j]);
    StoreVector(up, swiglu.y + i);
  }
}

}  // namespace

template <typename T>
cudaError_t LaunchSwiGlu(const SwiGlu<T>& swiglu, cudaStream_t stream, KernelStart start) {
  static_assert(kSwiGluBlock % kStoredVector == 0);
  if (swiglu.rows < 0 || swiglu.size < 1 || swiglu.size % kSwiGluBlock != 0) return cudaErrorInvalidValue;
  if (swiglu.rows == 0) return cudaSuccess;
  constexpr int64_t kBlockElements = int64_t{kThreads} * kStoredVector;
  const int64_t blocks = (swiglu.rows * swiglu.size + kBlockElements - 1) / kBlockElements;
  return StartKernel(start, SwiGluKernel<T>, static_cast<unsigned>(blocks < kBlocksMax ? blocks : kBlocksMax),
                     kThreads, 0, stream, swiglu);
}

template cudaError_t LaunchSwiGlu(const SwiGlu<__nv_bfloat16>&, cudaStream_t, KernelStart);
template cudaError_t LaunchSwiGlu(const SwiGlu<__half>&, cudaStream_t, KernelStart);
template cudaError_t LaunchSwiGlu(const SwiGlu<float>&, cudaStream_t, KernelStart);

}  // namespace warpsmith
