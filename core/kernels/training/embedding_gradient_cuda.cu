#include "core/kernels/stored_vectors.cuh"
#include "core/kernels/training/embedding_gradient_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 128;

// A block a token and kThreads * 8 columns.
template <typename T>
__global__ void EmbeddingGradientKernel(const EmbeddingGradient<T> g) {
  const int64_t column = (int64_t{blockIdx.y} * kThreads + threadIdx.x) * kStoredVector;
  if (column >= g.size) return;
  float* const to = g.embedding_grad + g.tokens[blockIdx.x] * g.size + column;
  float sums[kStoredVector];
  LoadVector(to, sums);
  for (int32_t i = g.indptr[blockIdx.x]; i < g.indptr[blockIdx.x + 1]; ++i) {
    float added[kStoredVector];
    LoadVector(g.x_grad + g.rows[i] * g.size + column, added);
#pragma unroll
    for (int j = 0; j < kStoredVector; ++j) sums[j] += added[j];
  }
  StoreVector(sums, to);
}

}  // namespace

template <typename T>
cudaError_t LaunchEmbeddingGradient(const EmbeddingGradient<T>& g, cudaStream_t stream) {
  if (g.num_tokens < 0 || g.size < 1 || g.size % kStoredVector != 0) return cudaErrorInvalidValue;
  if (g.num_tokens == 0) return cudaSuccess;
  constexpr int64_t kColumns = int64_t{kThreads} * kStoredVector;
  const dim3 blocks(static_cast<unsigned>(g.num_tokens),
                    static_cast<unsigned>((g.size + kColumns - 1) / kColumns));
  EmbeddingGradientKernel<T><<<blocks, kThreads, 0, stream>>>(g);
  return cudaGetLastError();
}

template cudaError_t LaunchEmbeddingGradient(const EmbeddingGradient<__nv_bfloat16>&, cudaStream_t);
template cudaError_t LaunchEmbeddingGradient(const EmbeddingGradient<float>&, cudaStream_t);

}  // namespace warpsmith
