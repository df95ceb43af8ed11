#include "core/kernels/attention_inputs_cuda.h"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/reductions.cuh"
#include "core/kernels/rotated_head.cuh"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarpsOfBlock = kThreads / kWarp;
constexpr int64_t kBlocksMax = 1 << 20;  // heads beyond are taken in turn
constexpr int64_t kHeadDimMax = 256;

// A warp a head.
template <int kSteps, typename T>
__global__ void AttentionInputsKernel(const AttentionInputs<T> inputs) {
  LetNextStart();
  const int64_t heads = HeadsOfRow(inputs), step_of_grid = int64_t{gridDim.x} * kWarpsOfBlock;
  for (int64_t i = int64_t{blockIdx.x} * kWarpsOfBlock + threadIdx.x / kWarp; i < inputs.rows * heads;
       i += step_of_grid) {
    const int64_t row = i / heads, head = i % heads;
    const RotatedHead<kSteps, T> rotated(inputs, row, head);
    T* const to = DestinationOf(inputs, PlaceOfHead(head, inputs.group_size), row);
    WaitForFormer();
    StoreHead(rotated.Compute(inputs.eps), inputs.head_dim / 2, to);
  }
}

}  // namespace

// Which kernel runs depends on head_dim alone.
template <typename T>
cudaError_t LaunchAttentionInputs(const AttentionInputs<T>& inputs, cudaStream_t stream, KernelStart start) {
  const bool head_fits = inputs.head_dim > 0 && inputs.head_dim % 4 == 0 && inputs.head_dim <= kHeadDimMax;
  if (!head_fits || inputs.rows < 0 || inputs.num_kv_heads < 1 || inputs.group_size < 1) {
    return cudaErrorInvalidValue;
  }
  if (inputs.rows == 0) return cudaSuccess;
  const int64_t wanted = (inputs.rows * HeadsOfRow(inputs) + kWarpsOfBlock - 1) / kWarpsOfBlock;
  const auto blocks = static_cast<unsigned>(wanted < kBlocksMax ? wanted : kBlocksMax);
  if (inputs.head_dim <= 4 * kWarp) {
    return StartKernel(start, AttentionInputsKernel<1, T>, blocks, kThreads, 0, stream, inputs);
  }
  return StartKernel(start, AttentionInputsKernel<2, T>, blocks, kThreads, 0, stream, inputs);
}

template cudaError_t LaunchAttentionInputs(const AttentionInputs<__nv_bfloat16>&, cudaStream_t, KernelStart);
template cudaError_t LaunchAttentionInputs(const AttentionInputs<__half>&, cudaStream_t, KernelStart);
template cudaError_t LaunchAttentionInputs(const AttentionInputs<float>&, cudaStream_t, KernelStart);

}  // namespace warpsmith
