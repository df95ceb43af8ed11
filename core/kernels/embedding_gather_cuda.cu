#include "core/kernels/embedding_gather_cuda.h"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/stored_vectors.cuh"

namespace warpsmith {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kBlocksMax = 1 << 20;  // rows beyond are taken in turn

constexpr unsigned kNanPair = 0x7fff7fff;  // in bfloat16 and in float16

template <typename T>
__device__ void FillNan(StoredVector<T>& vector) {
  vector.bits = {kNanPair, kNanPair, kNanPair, kNanPair};
}
__device__ void FillNan(StoredVector<float>& vector) {
  for (float& value : vector.values) value = __int_as_float(0x7fffffff);
}

// A block a row, a vector a thread.
template <typename T>
__global__ void EmbeddingGatherKernel(const EmbeddingGather<T> gather) {
  LetNextStart();
  WaitForFormer();
  using Vector = StoredVector<T>;
  const int64_t vectors = gather.size / kStoredVector;
  const auto* const embedding = reinterpret_cast<const Vector*>(gather.embedding);
  auto* const x = reinterpret_cast<Vector*>(gather.x);
  Vector nan;
  FillNan(nan);
  for (int64_t row = blockIdx.x; row < gather.rows; row += gridDim.x) {
    const int64_t token = TokenOfRow(gather, row);
    const bool valid = token >= 0 && token < gather.num_tokens;
    for (int64_t i = threadIdx.x; i < vectors; i += kThreads) {
      x[row * vectors + i] = valid ? embedding[token * vectors + i] : nan;
    }
  }
}

}  // namespace

template <typename T>
cudaError_t LaunchEmbeddingGather(const EmbeddingGather<T>& gather, cudaStream_t stream, KernelStart start) {
  if (gather.rows < 0 || gather.size < 1 || gather.size % kStoredVector != 0) return cudaErrorInvalidValue;
  if (gather.rows == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(gather.rows < kBlocksMax ? gather.rows : kBlocksMax);
  return StartKernel(start, EmbeddingGatherKernel<T>, blocks, kThreads, 0, stream, gather);
}

template cudaError_t LaunchEmbeddingGather(const EmbeddingGather<__nv_bfloat16>&, cudaStream_t, KernelStart);
template cudaError_t LaunchEmbeddingGather(const EmbeddingGather<__half>&, cudaStream_t, KernelStart);
template cudaError_t LaunchEmbeddingGather(const EmbeddingGather<float>&, cudaStream_t, KernelStart);

}  // namespace warpsmith
