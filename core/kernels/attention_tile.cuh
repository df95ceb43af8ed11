// What a warp does with 16 rows of queries and a tile of keys and values: scores, their softmax as it grows, the sums
// of values. Flash attention: Dao, arXiv 2307.08691, algorithm 1.
//
// A row's bits must not depend on the kernel around it. So every operation whose rounding matters is written as one
// instruction here, and rows never meet: the compiler has nothing to fuse in one kernel that it does not in another.
//
// T is what is stored: bfloat16 or float16.
#ifndef WARPSMITH_CORE_KERNELS_ATTENTION_TILE_CUH_
#define WARPSMITH_CORE_KERNELS_ATTENTION_TILE_CUH_

#include <cstdint>

#include "core/kernels/reductions.cuh"
#include "core/kernels/stored_pair.cuh"
#include "core/kernels/tensor_core.cuh"

namespace warpsmith {

inline constexpr int kWarpRows = 16;
inline constexpr int kTileTokens = 32;
inline constexpr int kChunkBytes = 16;
inline constexpr int kElementBytes = 2;
inline constexpr int kElementsOfChunk = kChunkBytes / kElementBytes;

template <int kHeadDim>
inline constexpr int kTileBytes = kTileTokens* kHeadDim* kElementBytes;

// Byte of a chunk in a tile of [kTileTokens, head_dim]. Chunks of a row change places by the row's number, so that the
// same chunk of eight rows lies in eight different groups of banks.
template <int kHeadDim>
__device__ inline int ChunkOffset(int row, int chunk) {
  return row * kHeadDim * kElementBytes + ((chunk ^ (row % 8)) * kChunkBytes);
}

// Queries of 16 rows, as the left side of products; lane l has rows l / 4 and l / 4 + 8.
template <int kHeadDim>
struct QueryRows {
  uint32_t parts[kHeadDim / 16][4];
};

// `rows`: this lane's two, each [head_dim]; zeros where null.
template <typename T, int kHeadDim>
__device__ inline void LoadQueries(const T* const (&rows)[2], QueryRows<kHeadDim>& queries) {
  const int column = 2 * (threadIdx.x % 4);
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const T* const row = rows[i % 2];
      queries.parts[step][i] =
          row == nullptr ? 0u : *reinterpret_cast<const uint32_t*>(row + step * 16 + column + i / 2 * 8);
    }
  }
}

// A row's sum, of the four lanes that share the row.
__device__ inline float SumOfShares(float share) {
  share = __fadd_rn(share, __shfl_xor_sync(kWholeWarp, share, 1));
  return __fadd_rn(share, __shfl_xor_sync(kWholeWarp, share, 2));
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
    for (float& part : sum) part = SumOfShares(part);
  }
};

using TileScores = float[kTileTokens / 8][4];

template <typename T, int kHeadDim>
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
      MultiplyTiles<T>(queries.parts[step], parts[0], parts[1], scores[2 * tokens]);
      MultiplyTiles<T>(queries.parts[step], parts[2], parts[3], scores[2 * tokens + 1]);
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

// Of one of the lane's two rows: the largest score of the tile.
__device__ inline float LargestScore(int row, const TileScores& scores) {
  float largest = -INFINITY;
#pragma unroll
  for (const auto& column : scores) largest = fmaxf(largest, fmaxf(column[2 * row], column[2 * row + 1]));
  largest = fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, 1));
  return fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, 2));
}

// Scores of a row become weights 2^(scale_log2 (score - largest)), `largest` of this tile and those before. Returns
// what the sums so far are multiplied with, whose largest was `before`. A row without a score yet keeps -infinity as
// its largest, and weighs nothing.
__device__ inline float WeighRow(int row, float scale_log2, float before, float largest, TileScores& scores) {
  const float shift = largest == -INFINITY ? 0.0f : largest;
  const float scaled_shift = __fmul_rn(shift, scale_log2);
#pragma unroll
  for (auto& column : scores) {
#pragma unroll
    for (int i = 2 * row; i < 2 * row + 2; ++i) {
      column[i] = ExponentialOf2(__fmaf_rn(column[i], scale_log2, -scaled_shift));
    }
  }
  return ExponentialOf2(__fmul_rn(__fsub_rn(before, shift), scale_log2));
}

// The sum so far of a row, rescaled, and the lane's weights of this tile.
__device__ inline float AddWeights(int row, float sum, float rescale, const TileScores& weights) {
  sum = __fmul_rn(sum, rescale);
#pragma unroll
  for (const auto& column : weights) {
    sum = __fadd_rn(sum, column[2 * row]);
    sum = __fadd_rn(sum, column[2 * row + 1]);
  }
  return sum;
}

// Multiplying by 1 changes no bit: the largest score seldom changes after the first tiles.
template <int kColumns>
__device__ inline void Rescale(const float (&rescale)[2], float (&values)[kColumns][4]) {
  if (!__any_sync(kWholeWarp, rescale[0] != 1.0f || rescale[1] != 1.0f)) return;
#pragma unroll
  for (auto& column : values) {
#pragma unroll
    for (int i = 0; i < 4; ++i) column[i] = __fmul_rn(column[i], rescale[i / 2]);
  }
}

// Scores become weights; what was summed before is scaled to the new largest.
template <int kHeadDim>
__device__ inline void WeighTile(float scale_log2, TileScores& scores, PartialSoftmax<kHeadDim>& softmax) {
  float rescale[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const float largest = fmaxf(softmax.largest[row], LargestScore(row, scores));
    rescale[row] = WeighRow(row, scale_log2, softmax.largest[row], largest, scores);
    softmax.largest[row] = largest;
    softmax.sum[row] = AddWeights(row, softmax.sum[row], rescale[row], scores);
  }
  Rescale(rescale, softmax.values);
}

// Weights of 16 tokens, rounded to T, as the left side of products.
template <typename T>
__device__ inline uint4 PackWeights(int tokens, const TileScores& weights) {
  const float(&low)[4] = weights[2 * tokens];
  const float(&high)[4] = weights[2 * tokens + 1];
  return {NarrowedPair<T>(low[0], low[1]), NarrowedPair<T>(low[2], low[3]), NarrowedPair<T>(high[0], high[1]),
          NarrowedPair<T>(high[2], high[3])};
}

// Adds the products of the weights of 16 tokens with 16 columns of their values, 8 to each of `low` and `high`.
template <typename T, int kHeadDim>
__device__ inline void AddColumns(const uint4& weights, int tokens, int columns, uint32_t values,
                                  float (&low)[4], float (&high)[4]) {
  const int lane = threadIdx.x % kWarp;
  const uint32_t left[4] = {weights.x, weights.y, weights.z, weights.w};
  const int row = tokens * 16 + lane / 8 % 2 * 8 + lane % 8;
  uint32_t parts[4];
  LoadMatricesTransposed(values + ChunkOffset<kHeadDim>(row, 2 * columns + lane / 16), parts);
  MultiplyTiles<T>(left, parts[0], parts[1], low);
  MultiplyTiles<T>(left, parts[2], parts[3], high);
}

// softmax.values += weights values, the weights rounded to T.
template <typename T, int kHeadDim>
__device__ inline void AddValues(const TileScores& weights, uint32_t values,
                                 PartialSoftmax<kHeadDim>& softmax) {
#pragma unroll
  for (int tokens = 0; tokens < kTileTokens / 16; ++tokens) {
    const uint4 left = PackWeights<T>(tokens, weights);
#pragma unroll
    for (int columns = 0; columns < kHeadDim / 16; ++columns) {
      AddColumns<T, kHeadDim>(left, tokens, columns, values, softmax.values[2 * columns],
                              softmax.values[2 * columns + 1]);
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
