#include "core/kernels/bfloat16_vectors.cuh"
#include "core/kernels/embedding_gather_cuda.h"
#include "core/kernels/kernel_start.cuh"

namespace warpsmith {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kBlocksMax = 1 << 20;  // rows beyond are taken in turn

constexpr unsigned kNanPair = 0x7fff7fff;

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
      const Bfloat16Vector nan = {{kNanPair, kNanPair, kNanPair, kNanPair}};
      x[row * vectors + i] = valid ? embedding[token * vectors + i] : nan;
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
