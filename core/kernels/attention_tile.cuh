// What a warp does with 16 rows of queries and a tile of keys and values: scores, their softmax as it grows, the sums
// of values. Flash attention: Dao, arXiv 2307.08691, algorithm 1.
//
// A row's bits must not depend on the kernel around it. So every operation whose rounding matters is written as one
// instruction here, and rows never meet: the compiler has nothing to fuse in one kernel that it does not in another.
#ifndef WARPSMITH_CORE_KERNELS_ATTENTION_TILE_CUH_
#define WARPSMITH_CORE_KERNELS_ATTENTION_TILE_CUH_

#include <cuda_bf16.h>

#include <cstdint>

#include "core/kernels/reductions.cuh"
#include "core/kernels/tensor_core.cuh"

namespace warpsmith {

inline constexpr int kWarpRows = 16;
inline constexpr int kTileTokens = 32;
inline constexpr int kChunkBytes = 16;

template <int kHeadDim>
inline constexpr int kTileBytes = kTileTokens* kHeadDim* static_cast<int>(sizeof(__nv_bfloat16));

// Byte of a chunk in a tile of [kTileTokens, head_dim]. Chunks of a row change places by the row's number, so that the
// same chunk of eight rows lies in eight different groups of banks.
template <int kHeadDim>
__device__ inline int ChunkOffset(int row, int chunk) {
  return row * kHeadDim * static_cast<int>(sizeof(__nv_bfloat16)) + ((chunk ^ (row % 8)) * kChunkBytes);
}

// Queries of 16 rows, as the left side of products; lane l has rows l / 4 and l / 4 + 8.
template <int kHeadDim>
struct QueryRows {
  uint32_t parts[kHeadDim / 16][4];
};

// `rows`: this lane's two, each [head_dim]; zeros where null.
template <int kHeadDim>
__device__ inline void LoadQueries(const __nv_bfloat16* const (&rows)[2], QueryRows<kHeadDim>& queries) {
  const int column = 2 * (threadIdx.x % 4);
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __nv_bfloat16* const row = rows[i % 2];
      queries.parts[step][i] =
          row == nullptr ? 0u : *reinterpret_cast<const uint32_t*>(row + step * 16 + column + i / 2 * 8);
    }
  }
}

// Softmax over some of the positions, before it is divided by its sum. Lane l has rows l / 4 and l / 4 + 8; of `values`
// columns 8 j + 2 (l % 4) and the next of each, as MultiplyTiles has its sums. `sum` is this lane's share until
// SumOverColumns.
template <int kHeadDim>
struct PartialSoftmax {
  float values[kHeadDim / 8][4];
  float largest[2];  // score, not scaled
  float sum[2];

  __device__ void Clear() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      largest[i] = -INFINITY;
      sum[i] = 0.0f;
    }
#pragma unroll
    for (auto& column : values) {
#pragma unroll
      for (float& value : column) value = 0.0f;
    }
  }
  __device__ void SumOverColumns() {
#pragma unroll
    for (float& part : sum) {
      part = __fadd_rn(part, __shfl_xor_sync(kWholeWarp, part, 1));
      part = __fadd_rn(part, __shfl_xor_sync(kWholeWarp, part, 2));
    }
  }
};

using TileScores = float[kTileTokens / 8][4];

template <int kHeadDim>
__device__ inline void ScoreTile(const QueryRows<kHeadDim>& queries, uint32_t keys, TileScores& scores) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (auto& column : scores) {
#pragma unroll
    for (float& score : column) score = 0.0f;
  }
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
#pragma unroll
    for (int tokens = 0; tokens < kTileTokens / 16; ++tokens) {
      const int row = tokens * 16 + lane / 16 * 8 + lane % 8;
      uint32_t parts[4];
      LoadMatrices(keys + ChunkOffset<kHeadDim>(row, 2 * step + lane / 8 % 2), parts);
      MultiplyTiles(queries.parts[step], parts[0], parts[1], scores[2 * tokens]);
      MultiplyTiles(queries.parts[step], parts[2], parts[3], scores[2 * tokens + 1]);
    }
  }
}

// -infinity where a token comes after its row's position. `first_token`: of the tile.
__device__ inline void HideLaterTokens(int first_token, const int (&positions)[2], TileScores& scores) {
  const int column = first_token + 2 * (threadIdx.x % 4);
#pragma unroll
  for (int j = 0; j < kTileTokens / 8; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (column + 8 * j + i % 2 > positions[i / 2]) scores[j][i] = -INFINITY;
    }
  }
}

// Scores become weights 2^(scale_log2 (score - largest)); what was summed before is scaled to the new largest. A row
// without a score yet keeps -infinity as its largest, and weighs nothing.
template <int kHeadDim>
__device__ inline void WeighTile(float scale_log2, TileScores& scores, PartialSoftmax<kHeadDim>& softmax) {
  float rescale[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float largest = softmax.largest[row];
#pragma unroll
    for (const auto& column : scores) largest = fmaxf(largest, fmaxf(column[2 * row], column[2 * row + 1]));
    largest = fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, 2));
    const float shift = largest == -INFINITY ? 0.0f : largest;
    rescale[row] = ExponentialOf2(__fmul_rn(__fsub_rn(softmax.largest[row], shift), scale_log2));
    softmax.largest[row] = largest;
    float sum = __fmul_rn(softmax.sum[row], rescale[row]);
    const float scaled_shift = __fmul_rn(shift, scale_log2);
#pragma unroll
    for (auto& column : scores) {
#pragma unroll
      for (int i = 2 * row; i < 2 * row + 2; ++i) {
        column[i] = ExponentialOf2(__fmaf_rn(column[i], scale_log2, -scaled_shift));
        sum = __fadd_rn(sum, column[i]);
      }
    }
    softmax.sum[row] = sum;
  }
  // Multiplying by 1 changes no bit: the largest score seldom changes after the first tiles.
  if (!__any_sync(kWholeWarp, rescale[0] != 1.0f || rescale[1] != 1.0f)) return;
#pragma unroll
  for (auto& column : softmax.values) {
#pragma unroll
    for (int i = 0; i < 4; ++i) column[i] = __fmul_rn(column[i], rescale[i / 2]);
  }
}

__device__ inline uint32_t PairOf(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// softmax.values += weights values, the weights rounded to bfloat16.
template <int kHeadDim>
__device__ inline void AddValues(const TileScores& weights, uint32_t values,
                                 PartialSoftmax<kHeadDim>& softmax) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int tokens = 0; tokens < kTileTokens / 16; ++tokens) {
    const float(&low)[4] = weights[2 * tokens];
    const float(&high)[4] = weights[2 * tokens + 1];
    const uint32_t left[4] = {PairOf(low[0], low[1]), PairOf(low[2], low[3]), PairOf(high[0], high[1]),
                              PairOf(high[2], high[3])};
    const int row = tokens * 16 + lane / 8 % 2 * 8 + lane % 8;
#pragma unroll
    for (int columns = 0; columns < kHeadDim / 16; ++columns) {
      uint32_t parts[4];
      LoadMatricesTransposed(values + ChunkOffset<kHeadDim>(row, 2 * columns + lane / 16), parts);
      MultiplyTiles(left, parts[0], parts[1], softmax.values[2 * columns]);
      MultiplyTiles(left, parts[2], parts[3], softmax.values[2 * columns + 1]);
    }
  }
}

// One softmax over the positions of two: what is summed of the earlier ones takes `scale_sum`, of the later ones
// `scale_part`. Afterwards `largest` is that of both, which is not -infinity.
struct SoftmaxMerge {
  float scale_sum, scale_part;
};

__device__ inline SoftmaxMerge MergeLargest(float scale_log2, float part, float& largest) {
  const float both = fmaxf(largest, part);
  const SoftmaxMerge merge = {ExponentialOf2(__fmul_rn(__fsub_rn(largest, both), scale_log2)),
                              ExponentialOf2(__fmul_rn(__fsub_rn(part, both), scale_log2))};
  largest = both;
  return merge;
}

__device__ inline float Merged(const SoftmaxMerge& merge, float sum, float part) {
  return __fmaf_rn(part, merge.scale_part, __fmul_rn(sum, merge.scale_sum));
}

// What the values are multiplied with at the end.
__device__ inline float InverseOfSum(float sum) { return __fdiv_rn(1.0f, sum); }

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ATTENTION_TILE_CUH_
