#include "core/kernels/stored_vectors.cuh"
#include "core/kernels/swiglu.cuh"
#include "core/kernels/training/swiglu_gradient_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlocksMax = 1 << 20;  // vectors beyond are taken in turn

// Eight columns of one row a thread, which reads all that it overwrites first.
template <typename T>
__global__ void SwiGluGradientKernel(const SwiGluGradient<T> g) {
  const int64_t elements = g.rows * g.size, step = int64_t{gridDim.x} * kThreads * kStoredVector;
  for (int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kStoredVector; i < elements; i += step) {
    float gate[kStoredVector], up[kStoredVector], y[kStoredVector], dy[kStoredVector];
    LoadVector(g.gate_up + GateColumn(i), gate);
    LoadVector(g.gate_up + GateColumn(i) + kSwiGluBlock, up);
    LoadVector(g.y_grad + i, dy);
#pragma unroll
    for (int j = 0; j < kStoredVector; ++j) {
      const float x = gate[j], sigmoid = 1.0f / (1.0f + expf(-x));
      y[j] = SwiGluOf<T>(x, up[j]);
      gate[j] = dy[j] * up[j] * sigmoid * (1.0f + x * (1.0f - sigmoid));
      up[j] = dy[j] * x * sigmoid;
    }
    StoreVector(gate, g.gate_up_grad + GateColumn(i));
    StoreVector(up, g.gate_up_grad + GateColumn(i) + kSwiGluBlock);
    StoreVector(y, g.y + i);
  }
}

}  // namespace

template <typename T>
cudaError_t LaunchSwiGluGradient(const SwiGluGradient<T>& g, cudaStream_t stream) {
  if (g.rows < 0 || g.size < 1 || g.size % kSwiGluBlock != 0) return cudaErrorInvalidValue;
  if (g.rows == 0) return cudaSuccess;
  constexpr int64_t kBlockElements = int64_t{kThreads} * kStoredVector;
  const int64_t blocks = (g.rows * g.size + kBlockElements - 1) / kBlockElements;
  SwiGluGradientKernel<T>
      <<<static_cast<unsigned>(blocks < kBlocksMax ? blocks : kBlocksMax), kThreads, 0, stream>>>(g);
  return cudaGetLastError();
}

template cudaError_t LaunchSwiGluGradient(const SwiGluGradient<__nv_bfloat16>&, cudaStream_t);
template cudaError_t LaunchSwiGluGradient(const SwiGluGradient<float>&, cudaStream_t);

}  // namespace warpsmith
