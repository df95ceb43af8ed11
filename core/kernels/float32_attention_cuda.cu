#include <climits>

#include "core/kernels/float32_attention_cuda.h"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/reductions.cuh"

namespace warpsmith {
namespace {

// Of a block; positions of a tile, each scored by one thread.
constexpr int kThreads = 128;
constexpr int kWarpsOfBlock = kThreads / kWarp;

// The query whose rows hold `row`: the last that begins at or before it.
__device__ int64_t QueryOfRow(const PagedAttention<float>& attention, int64_t row) {
  int64_t first = 0, last = attention.num_queries - 1;
  while (first < last) {
    const int64_t middle = (first + last + 1) / 2;
    if (attention.row_indptr[middle] <= row) {
      first = middle;
    } else {
      last = middle - 1;
    }
  }
  return first;
}

// First element of the KV head at a position, in the keys and in the values. `pages` are the query's.
__device__ int64_t HeadOffset(const PagedAttention<float>& attention, const int32_t* pages, int64_t position,
                              int64_t kv_head) {
  const int64_t page = pages[position / attention.page_tokens];
  const int64_t entry = page * attention.page_tokens + position % attention.page_tokens;
  return (entry * attention.num_kv_heads + kv_head) * attention.head_dim;
}

template <int kHeadDim>
__device__ float Dot(const float* a, const float* b) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kHeadDim; i += 4) {
    const float4 x = *reinterpret_cast<const float4*>(a + i), y = *reinterpret_cast<const float4*>(b + i);
    sum = fmaf(x.x, y.x, sum);
    sum = fmaf(x.y, y.y, sum);
    sum = fmaf(x.z, y.z, sum);
    sum = fmaf(x.w, y.w, sum);
  }
  return sum;
}

// In every thread; `of_warps` is shared memory.
__device__ float BlockMax(float value, float* of_warps) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, offset));
  }
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  for (int warp = 0; warp < kWarpsOfBlock; ++warp) value = fmaxf(value, of_warps[warp]);
  __syncthreads();  // before the next call writes of_warps
  return value;
}

// A block a row and query head. Positions come in tiles from the first on: a thread scores one of them, then adds up a
// column of the values. With m the largest score so far, s the sum of exp(score - m) and o that of exp(score - m) v, a
// tile of a larger score scales s and o by exp(old m - new m). Milakov and Gimelshein, arXiv 1805.02867.
template <int kHeadDim>
__global__ void __launch_bounds__(kThreads)
    Float32AttentionKernel(const PagedAttention<float> attention, bool decodes) {
  static_assert(kHeadDim <= kThreads);
  __shared__ __align__(16) float query[kHeadDim];
  __shared__ float weights[kThreads], partials[kWarpsOfBlock];
  __shared__ int64_t offsets[kThreads];
  LetNextStart();
  WaitForFormer();
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t heads = attention.num_kv_heads * attention.group_size;
  const int64_t row = blockIdx.x / heads, head = blockIdx.x % heads;
  const int64_t query_index = decodes ? row : QueryOfRow(attention, row);
  const int32_t* const pages = attention.page_indices + attention.page_indptr[query_index];
  const int last = attention.positions[row];
  if (thread < kHeadDim) query[thread] = attention.queries[blockIdx.x * int64_t{kHeadDim} + thread];
  __syncthreads();

  float largest = -INFINITY, sum = 0.0f, output = 0.0f;
  for (int first = 0; first <= last; first += kThreads) {
    float score = -INFINITY;
    if (first + thread <= last) {
      offsets[thread] = HeadOffset(attention, pages, first + thread, head / attention.group_size);
      score = attention.scale * Dot<kHeadDim>(query, attention.key_pages + offsets[thread]);
    }
    const float former = largest;
    largest = fmaxf(largest, BlockMax(score, partials));
    const float rescaled = expf(former - largest);  // 0 in the first tile
    weights[thread] = expf(score - largest);        // 0 behind the last position
    sum = sum * rescaled + BlockSum<kThreads>(weights[thread], partials);
    output *= rescaled;
    const int count = min(kThreads, last + 1 - first);
    if (thread < kHeadDim) {
#pragma unroll 8
      for (int i = 0; i < count; ++i)
        output = fmaf(weights[i], attention.value_pages[offsets[i] + thread], output);
    }
    __syncthreads();  // before the next tile's offsets and weights
  }
  if (thread < kHeadDim) attention.output[blockIdx.x * int64_t{kHeadDim} + thread] = output / sum;
}

template <int kHeadDim>
cudaError_t Launch(const PagedAttention<float>& attention, bool decodes, cudaStream_t stream,
                   KernelStart start) {
  const int64_t blocks = attention.rows * attention.num_kv_heads * attention.group_size;
  if (blocks > INT_MAX) return cudaErrorInvalidValue;
  return StartKernel(start, Float32AttentionKernel<kHeadDim>, static_cast<unsigned>(blocks), kThreads, 0,
                     stream, attention, decodes);
}

}  // namespace

cudaError_t LaunchFloat32Attention(const PagedAttention<float>& attention, const PagedAttentionBounds& bounds,
                                   cudaStream_t stream, KernelStart start) {
  const bool decodes = bounds.rows_of_query_max == 1;
  if (attention.num_kv_heads < 1 || attention.group_size < 1 || attention.page_tokens < 1 ||
      attention.scale <= 0 || attention.num_queries < 0 || attention.rows < attention.num_queries ||
      bounds.rows_of_query_max < 1 || bounds.context_tokens_max < 1 ||
      (decodes && attention.rows != attention.num_queries)) {
    return cudaErrorInvalidValue;
  }
  if (attention.head_dim != 64 && attention.head_dim != 128) return cudaErrorInvalidValue;
  if (attention.num_queries == 0) return cudaSuccess;
  return attention.head_dim == 64 ? Launch<64>(attention, decodes, stream, start)
                                  : Launch<128>(attention, decodes, stream, start);
}

}  // namespace warpsmith
