// A split of a decoding row by a whole block, for batches of so few rows that a warp a split would leave most of a
// device idle. Bits are those of AttendItem with one warp: each sum is made of the same operations in the same order.
// What does not depend on that order is shared out: scores and weights by tiles, sums of values by columns.
#ifndef WARPSMITH_CORE_KERNELS_ATTENTION_SPLIT_CUH_
#define WARPSMITH_CORE_KERNELS_ATTENTION_SPLIT_CUH_

#include <cuda_bf16.h>

#include <cstdint>

#include "core/kernels/attention_items.cuh"
#include "core/kernels/attention_tile.cuh"
#include "core/kernels/kernel_start.cuh"

namespace warpsmith {

inline constexpr int kTilesOfSplit = kAttentionSplitTokens / kTileTokens;
inline constexpr int kSplitWarps = kTilesOfSplit;
inline constexpr int kSplitThreads = kSplitWarps * kWarp;

// Shared memory of a block.
template <int kHeadDim>
struct SplitMemory {
  unsigned char keys[kTilesOfSplit * kTileBytes<kHeadDim>];
  unsigned char values[kTilesOfSplit * kTileBytes<kHeadDim>];
  uint4 packed[kTilesOfSplit][kTileTokens / 16][kWarp];   // PackWeights of each lane
  float4 weights[kTilesOfSplit][kTileTokens / 8][kWarp];  // before they are rounded
  float largest[kTilesOfSplit][kWarpRows];                // score of each tile
  float rescale[kTilesOfSplit][kWarpRows];
  float inverse[kWarpRows];  // of the sum of weights
};

// Copies tiles of an item's keys or values. All threads of the block take part.
template <int kHeadDim>
class SplitLoader {
 public:
  __device__ SplitLoader(const PagedAttention<__nv_bfloat16>& attention, const AttentionItem& item)
      : stride_(attention.num_kv_heads * kHeadDim),
        offset_(item.head * int64_t{kHeadDim} + threadIdx.x % kChunksOfRow * kElementsOfChunk),
        row_(static_cast<int>(threadIdx.x) / kChunksOfRow),
        tokens_(item.last_token + 1 - item.first_token) {
    // A lane a group of the split: the entry of its first token.
    const int position = item.first_token + static_cast<int>(threadIdx.x) % kWarp * kPageGroupTokens;
    const int page_tokens = static_cast<int>(attention.page_tokens);
    const int32_t* const pages = attention.page_indices + attention.page_indptr[item.query];
    const bool present = threadIdx.x % kWarp < kGroupsOfSplit && position <= item.last_token;
    first_entry_ = present ? pages[position / page_tokens] * page_tokens + position % page_tokens : 0;
  }

  __device__ int num_tiles() const { return (tokens_ + kTileTokens - 1) / kTileTokens; }

  // Tokens behind the last are zeros.
  __device__ void Start(const __nv_bfloat16* pages, int first_tile, int end_tile, uint32_t to) const {
    for (int tile = first_tile; tile < end_tile; ++tile) {
#pragma unroll
      for (int i = 0; i < kTileTokens; i += kRowsAtOnce) {
        const int token = tile * kTileTokens + i + row_;
        // One for the whole warp, whose rows are of one group.
        const int64_t entry = __shfl_sync(kWholeWarp, first_entry_, token / kPageGroupTokens);
        CopyAsync(to + ChunkOffset<kHeadDim>(token, threadIdx.x % kChunksOfRow),
                  pages + (entry + token % kPageGroupTokens) * stride_ + offset_, token < tokens_);
      }
    }
  }

 private:
  static constexpr int kElementsOfChunk = kChunkBytes / static_cast<int>(sizeof(__nv_bfloat16));
  static constexpr int kChunksOfRow = kHeadDim / kElementsOfChunk;
  static constexpr int kRowsAtOnce = kSplitThreads / kChunksOfRow;
  static_assert(kTileTokens % kRowsAtOnce == 0 && kPageGroupTokens % (kWarp / kChunksOfRow) == 0);

  int64_t stride_;  // from token to token
  int64_t offset_;  // of the thread's chunk
  int row_;         // of those that the block copies at once
  int tokens_;
  int first_entry_;
};

// Scores of the warp's tile, and their largest.
template <int kHeadDim>
__device__ void ScoreOwnTile(const AttentionLaunch& launch, const AttentionItem& item,
                             const LaneRows& lane_rows, int tile, SplitMemory<kHeadDim>& memory,
                             TileScores& scores) {
  QueryRows<kHeadDim> queries;
  const __nv_bfloat16* const rows[2] = {
      lane_rows.offsets[0] < 0 ? nullptr : launch.attention.queries + lane_rows.offsets[0],
      lane_rows.offsets[1] < 0 ? nullptr : launch.attention.queries + lane_rows.offsets[1]};
  LoadQueries(rows, queries);
  ScoreTile(queries, SharedAddress(memory.keys) + tile * kTileBytes<kHeadDim>, scores);
  const int first = item.first_token + tile * kTileTokens;
  if (first + kTileTokens - 1 > item.last_token) HideLaterTokens(first, lane_rows.positions, scores);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const float largest = LargestScore(row, scores);
    if (lane % 4 == 0) memory.largest[tile][lane / 4 + 8 * row] = largest;
  }
}

// Of the scores of `num_tiles` tiles.
template <int kHeadDim>
__device__ float LargestBefore(const SplitMemory<kHeadDim>& memory, int num_tiles, int row) {
  float largest = -INFINITY;
  for (int tile = 0; tile < num_tiles; ++tile) {
    largest = fmaxf(largest, memory.largest[tile][static_cast<int>(threadIdx.x) % kWarp / 4 + 8 * row]);
  }
  return largest;
}

// Weights of the warp's tile.
template <int kHeadDim>
__device__ void WeighOwnTile(float scale_log2, int tile, SplitMemory<kHeadDim>& memory, TileScores& scores) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const int place = lane / 4 + 8 * row;
    const float before = LargestBefore(memory, tile, row);
    const float rescale =
        WeighRow(row, scale_log2, before, fmaxf(before, memory.largest[tile][place]), scores);
    if (lane % 4 == 0) memory.rescale[tile][place] = rescale;
  }
#pragma unroll
  for (int tokens = 0; tokens < kTileTokens / 16; ++tokens) {
    memory.packed[tile][tokens][lane] = PackWeights(tokens, scores);
  }
#pragma unroll
  for (int i = 0; i < kTileTokens / 8; ++i) {
    memory.weights[tile][i][lane] = make_float4(scores[i][0], scores[i][1], scores[i][2], scores[i][3]);
  }
}

// The sums of the weights of the lane's two rows. By one warp.
template <int kHeadDim>
__device__ void SumWeights(const SplitMemory<kHeadDim>& memory, int num_tiles, float (&sums)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  sums[0] = sums[1] = 0.0f;
  for (int tile = 0; tile < num_tiles; ++tile) {
    TileScores weights;
#pragma unroll
    for (int i = 0; i < kTileTokens / 8; ++i) {
      *reinterpret_cast<float4*>(weights[i]) = memory.weights[tile][i][lane];
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      sums[row] = AddWeights(row, sums[row], memory.rescale[tile][lane / 4 + 8 * row], weights);
    }
  }
#pragma unroll
  for (float& sum : sums) sum = SumOfShares(sum);
}

// 16 columns of a split, as PartialSoftmax has them.
using SplitColumns = float[2][4];

template <int kHeadDim>
__device__ void SumColumns(const SplitMemory<kHeadDim>& memory, int num_tiles, int columns,
                           SplitColumns& sums) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (auto& column : sums) column[0] = column[1] = column[2] = column[3] = 0.0f;
  for (int tile = 0; tile < num_tiles; ++tile) {
    const float rescale[2] = {memory.rescale[tile][lane / 4], memory.rescale[tile][lane / 4 + 8]};
    Rescale(rescale, sums);
#pragma unroll
    for (int tokens = 0; tokens < kTileTokens / 16; ++tokens) {
      AddColumns<kHeadDim>(memory.packed[tile][tokens][lane], tokens, columns,
                           SharedAddress(memory.values) + tile * kTileBytes<kHeadDim>, sums[0], sums[1]);
    }
  }
}

template <int kHeadDim>
__device__ void WriteColumns(const AttentionLaunch& launch, const AttentionItem& item,
                             const LaneRows& lane_rows, bool whole, int columns,
                             const SplitMemory<kHeadDim>& memory, const SplitColumns& sums) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (lane_rows.offsets[i] < 0) continue;
    const int column = 16 * columns + 2 * (lane % 4);
    const int64_t at = PlaceOfSums<kHeadDim>(launch, lane_rows.offsets[i], item);
    const float inverse = whole ? memory.inverse[lane / 4 + 8 * i] : 0.0f;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float low = sums[j][2 * i], high = sums[j][2 * i + 1];
      if (whole) {
        *reinterpret_cast<__nv_bfloat162*>(launch.attention.output + lane_rows.offsets[i] + column + 8 * j) =
            __floats2bfloat162_rn(__fmul_rn(low, inverse), __fmul_rn(high, inverse));
      } else {
        *reinterpret_cast<float2*>(launch.sums.values + at * kHeadDim + column + 8 * j) =
            make_float2(low, high);
      }
    }
  }
}

// The sums of weights go where they are wanted: to the other warps, or to the merge. By one warp.
template <int kHeadDim>
__device__ void PublishSums(const AttentionLaunch& launch, const AttentionItem& item,
                            const LaneRows& lane_rows, bool whole, int num_tiles,
                            SplitMemory<kHeadDim>& memory) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float sums[2];
  SumWeights(memory, num_tiles, sums);
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    if (lane % 4 != 0 || lane_rows.offsets[row] < 0) continue;
    if (whole) {
      memory.inverse[lane / 4 + 8 * row] = InverseOfSum(sums[row]);
    } else {
      launch.sums.scales[PlaceOfSums<kHeadDim>(launch, lane_rows.offsets[row], item)] =
          make_float2(LargestBefore(memory, num_tiles, row), sums[row]);
    }
  }
}

// The first item of a block. Entries of its position may be written by the former kernel, all before them are not.
template <int kHeadDim>
__device__ void StartFirstItem(const PagedAttention<__nv_bfloat16>& attention, const AttentionItem& item,
                               const SplitMemory<kHeadDim>& memory) {
  const SplitLoader<kHeadDim> loader(attention, item);
  const uint32_t keys = SharedAddress(memory.keys), values = SharedAddress(memory.values);
  const int num_tiles = loader.num_tiles();
  const int constant = item.last_token == attention.positions[item.query] ? num_tiles - 1 : num_tiles;
  loader.Start(attention.key_pages, 0, constant, keys);
  loader.Start(attention.value_pages, 0, constant, values);
  WaitForFormer();
  loader.Start(attention.key_pages, constant, num_tiles, keys);
  loader.Start(attention.value_pages, constant, num_tiles, values);
  CommitCopies();
  CommitCopies();  // none, in place of the values alone
}

// Computes an item whose copies are under way, keys and values as a group each, and starts those of `next`, which may
// be null.
template <int kHeadDim>
__device__ void AttendSplit(const AttentionLaunch& launch, const AttentionItem& item,
                            const AttentionItem* next, SplitMemory<kHeadDim>& memory) {
  const PagedAttention<__nv_bfloat16>& attention = launch.attention;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int num_tiles = (item.last_token - item.first_token) / kTileTokens + 1;
  const bool whole = IsWhole(launch, item);
  const LaneRows lane_rows = LaneRowsOf(attention, item, 0);
  TileScores scores;
  WaitForCopies<1>();
  __syncthreads();
  if (warp < num_tiles) ScoreOwnTile(launch, item, lane_rows, warp, memory, scores);
  __syncthreads();  // keys have been read, and the largest of all tiles are there
  if (next != nullptr) {
    const SplitLoader<kHeadDim> loader(attention, *next);
    loader.Start(attention.key_pages, 0, loader.num_tiles(), SharedAddress(memory.keys));
  }
  CommitCopies();
  if (warp < num_tiles) WeighOwnTile(launch.scale_log2, warp, memory, scores);
  WaitForCopies<1>();
  __syncthreads();
  SplitColumns sums;
  const bool has_columns = warp < kHeadDim / 16;
  if (has_columns) SumColumns(memory, num_tiles, warp, sums);
  if (warp == kSplitWarps - 1) PublishSums(launch, item, lane_rows, whole, num_tiles, memory);
  __syncthreads();  // values have been read, and inverse sums are there
  if (next != nullptr) {
    const SplitLoader<kHeadDim> loader(attention, *next);
    loader.Start(attention.value_pages, 0, loader.num_tiles(), SharedAddress(memory.values));
  }
  CommitCopies();
  if (has_columns) WriteColumns(launch, item, lane_rows, whole, warp, memory, sums);
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ATTENTION_SPLIT_CUH_
