#include "core/kernels/bfloat16_vectors.cuh"
#include "core/kernels/embedding_gather_cuda.h"
#include "core/kernels/kernel_start.cuh"

namespace warpsmith {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kBlocksMax = 1 << 20;  // rows beyond are taken in turn

__device__ Bfloat16Vector NanVector() {
  Bfloat16Vector nan;
  for (__nv_bfloat162& pair : nan.pairs) pair = __float2bfloat162_rn(__int_as_float(0x7fffffff));
  return nan;
}

// A block a row, 16 bytes a thread.
__global__ void EmbeddingGatherKernel(const EmbeddingGather<__nv_bfloat16> gather) {
  LetNextStart();
  WaitForFormer();
  const int64_t vectors = gather.size / kBfloat16Vector;
  const auto* const embedding = reinterpret_cast<const Bfloat16Vector*>(gather.embedding);
  auto* const x = reinterpret_cast<Bfloat16Vector*>(gather.x);
  for (int64_t row = blockIdx.x; row < gather.rows; row += gridDim.x) {
    const int64_t token = TokenOfRow(gather, row);
    const bool valid = token >= 0 && token < gather.num_tokens;
    for (int64_t i = threadIdx.x; i < vectors; i += kThreads) {
      x[row * vectors + i] = valid ? embedding[token * vectors + i] : NanVector();
    }
  }
}

}  // namespace

cudaError_t LaunchEmbeddingGather(const EmbeddingGather<__nv_bfloat16>& gather, cudaStream_t stream,
                                  KernelStart start) {
  if (gather.rows < 0 || gather.size < 1 || gather.size % kBfloat16Vector != 0) return cudaErrorInvalidValue;
  if (gather.rows == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(gather.rows < kBlocksMax ? gather.rows : kBlocksMax);
  return StartKernel(start, EmbeddingGatherKernel, blocks, kThreads, 0, stream, gather);
}

}  // namespace warpsmith
