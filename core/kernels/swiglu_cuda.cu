#include "core/kernels/bfloat16_vectors.cuh"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/swiglu.cuh"
#include "core/kernels/swiglu_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocksMax = 1 << 20;  // vectors beyond are taken in turn

// Eight columns of one row a thread. A row is whole blocks, so GateColumn holds for all rows taken as one as well.
__global__ void SwiGluKernel(const SwiGlu<__nv_bfloat16> swiglu) {
  LetNextStart();
  WaitForFormer();
  const int64_t elements = swiglu.rows * swiglu.size;
  const int64_t step = int64_t{gridDim.x} * kThreads * kBfloat16Vector;
  for (int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kBfloat16Vector; i < elements;
       i += step) {
    float gate[kBfloat16Vector], up[kBfloat16Vector];
    LoadVector(swiglu.gate_up + GateColumn(i), gate);
    LoadVector(swiglu.gate_up + GateColumn(i) + kSwiGluBlock, up);
#pragma unroll
    for (int j = 0; j < kBfloat16Vector; ++j) up[j] = SwiGluOf(gate[j], up[j]);
    StoreVector(up, swiglu.y + i);
  }
}

}  // namespace

cudaError_t LaunchSwiGlu(const SwiGlu<__nv_bfloat16>& swiglu, cudaStream_t stream, KernelStart start) {
  static_assert(kSwiGluBlock % kBfloat16Vector == 0);
  if (swiglu.rows < 0 || swiglu.size < 1 || swiglu.size % kSwiGluBlock != 0) return cudaErrorInvalidValue;
  if (swiglu.rows == 0) return cudaSuccess;
  constexpr int64_t kBlockElements = int64_t{kThreads} * kBfloat16Vector;
  const int64_t blocks = (swiglu.rows * swiglu.size + kBlockElements - 1) / kBlockElements;
  return StartKernel(start, SwiGluKernel, static_cast<unsigned>(blocks < kBlocksMax ? blocks : kBlocksMax),
                     kThreads, 0, stream, swiglu);
}

}  // namespace warpsmith
