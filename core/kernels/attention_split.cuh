// A split of a decoding row by a whole block, for batches of so few rows that a warp a split would leave most of a
// device idle. Bits are those of AttendItem with one warp: each sum is made of the same operations in the same order.
// What does not depend on that order is shared out: scores and weights by tiles, sums of values by columns.
#ifndef WARPSMITH_CORE_KERNELS_ATTENTION_SPLIT_CUH_
#define WARPSMITH_CORE_KERNELS_ATTENTION_SPLIT_CUH_

#include <cstdint>
#include <type_traits>

#include "core/kernels/attention_items.cuh"
#include "core/kernels/attention_tile.cuh"
#include "core/kernels/hopper.cuh"
#include "core/kernels/kernel_start.cuh"

namespace warpsmith {

inline constexpr int kTilesOfSplit = kAttentionSplitTokens / kTileTokens;
inline constexpr int kSplitWarps = kTilesOfSplit;
inline constexpr int kSplitThreads = kSplitWarps * kWarp;

// Shared memory of a block. kLaneRows: rows of a lane that a query head may be in, 1 of groups of up to 8 heads, or 2.
// Weights lie where keys have been read.
template <int kHeadDim, int kLaneRows>
struct alignas(128) SplitMemory {
  using Packed = std::conditional_t<kLaneRows == 1, uint2, uint4>;
  using Weights = std::conditional_t<kLaneRows == 1, float2, float4>;

  unsigned char keys[kTilesOfSplit * kTileBytes<kHeadDim>];
  unsigned char values[kTilesOfSplit * kTileBytes<kHeadDim>];
  struct TileWeights {
    Packed packed[kTilesOfSplit][kTileTokens / 16][kWarp];  // PackWeights of each lane
    Weights exact[kTilesOfSplit][kTileTokens / 8][kWarp];   // before they are rounded
  };
  float largest[kTilesOfSplit][8 * kLaneRows];  // score of each tile
  float rescale[kTilesOfSplit][8 * kLaneRows];
  float inverse[8 * kLaneRows];  // of the sum of weights

  __device__ TileWeights& weights() {
    static_assert(sizeof(TileWeights) <= sizeof(keys));
    return *reinterpret_cast<TileWeights*>(keys);
  }
};

// What another warp stores of a lane: of both of its rows, or of the first.
__device__ inline void PutPacked(const uint4& packed, uint4& to) { to = packed; }
__device__ inline void PutPacked(const uint4& packed, uint2& to) { to = {packed.x, packed.z}; }
__device__ inline uint4 TakePacked(const uint4& from) { return from; }
__device__ inline uint4 TakePacked(const uint2& from) { return {from.x, 0, from.y, 0}; }
__device__ inline void PutWeights(const float (&weights)[4], float4& to) {
  to = {weights[0], weights[1], weights[2], weights[3]};
}
__device__ inline void PutWeights(const float (&weights)[4], float2& to) { to = {weights[0], weights[1]}; }
__device__ inline void TakeWeights(const float4& from, float (&weights)[4]) {
  *reinterpret_cast<float4*>(weights) = from;
}
__device__ inline void TakeWeights(const float2& from, float (&weights)[4]) {
  *reinterpret_cast<float4*>(weights) = {from.x, from.y, 0.0f, 0.0f};
}

// Where the sums of an item go: those of query head `i` of its group are `stride` i further.
struct SplitPlace {
  float* values;   // [kHeadDim]
  float2* scales;  // largest score and sum of weights
  int64_t stride;
};

template <int kHeadDim, typename T>
__device__ SplitPlace SplitPlaceOf(const AttentionLaunch<T>& launch, const AttentionItem& item) {
  const int64_t offset = QueryHeadOffset(launch.attention, item.first_row, item.head, 0);
  const int64_t at = PlaceOfSums<kHeadDim>(launch, offset, item);
  return {launch.sums.values + at * kHeadDim, launch.sums.scales + at, launch.sums.num_splits_max};
}

// Copies tiles of an item's keys or values. All threads of the block take part.
template <typename T, int kHeadDim>
class SplitLoader {
 public:
  // `pages`: those of the query. `fresh`: a position whose entry is not read, or -1.
  __device__ SplitLoader(const PagedAttention<T>& attention, const int32_t* pages, const AttentionItem& item,
                         int fresh)
      : stride_(attention.num_kv_heads * kHeadDim),
        offset_(item.head * int64_t{kHeadDim} + threadIdx.x % kChunksOfRow * kElementsOfChunk),
        row_(static_cast<int>(threadIdx.x) / kChunksOfRow),
        tokens_(item.last_token + 1 - item.first_token),
        fresh_(fresh - item.first_token) {
    // A lane a group of the split: the entry of its first token.
    const int position = item.first_token + static_cast<int>(threadIdx.x) % kWarp * kPageGroupTokens;
    const int page_tokens = static_cast<int>(attention.page_tokens);
    const bool present = threadIdx.x % kWarp < kGroupsOfSplit && position <= item.last_token;
    first_entry_ =
        present ? LoadKept(pages + position / page_tokens) * page_tokens + position % page_tokens : 0;
  }

  __device__ int num_tiles() const { return (tokens_ + kTileTokens - 1) / kTileTokens; }

  // Tokens behind the last are zeros. The fresh one is left to the caller.
  __device__ void Start(const T* pages, int first_tile, int end_tile, unsigned char* to) const {
    for (int tile = first_tile; tile < end_tile; ++tile) {
#pragma unroll
      for (int i = 0; i < kTileTokens; i += kRowsAtOnce) {
        const int token = tile * kTileTokens + i + row_, chunk = static_cast<int>(threadIdx.x) % kChunksOfRow;
        // One for the whole warp, whose rows are of one group.
        const int64_t entry = __shfl_sync(kWholeWarp, first_entry_, token / kPageGroupTokens);
        if (token == fresh_) continue;
        CopyAsync(SharedAddress(to + ChunkOffset<kHeadDim>(token, chunk)),
                  pages + (entry + token % kPageGroupTokens) * stride_ + offset_, token < tokens_);
      }
    }
  }

 private:
  static constexpr int kChunksOfRow = kHeadDim / kElementsOfChunk;
  static constexpr int kRowsAtOnce = kSplitThreads / kChunksOfRow;
  static_assert(kTileTokens % kRowsAtOnce == 0 && kPageGroupTokens % (kWarp / kChunksOfRow) == 0);

  int64_t stride_;  // from token to token
  int64_t offset_;  // of the thread's chunk
  int row_;         // of those that the block copies at once
  int tokens_;
  int fresh_;  // token of the split
  int first_entry_;
};

// Scores of the warp's tile, and their largest.
template <typename T, int kHeadDim, int kLaneRows>
__device__ void ScoreOwnTile(const AttentionItem& item, const QueryRows<kHeadDim>& queries,
                             const int (&positions)[2], int tile, SplitMemory<kHeadDim, kLaneRows>& memory,
                             TileScores& scores) {
  ScoreTile<T>(queries, SharedAddress(memory.keys) + tile * kTileBytes<kHeadDim>, scores);
  const int first = item.first_token + tile * kTileTokens;
  if (first + kTileTokens - 1 > item.last_token) HideLaterTokens(first, positions, scores);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int row = 0; row < kLaneRows; ++row) {
    const float largest = LargestScore(row, scores);
    if (lane % 4 == 0) memory.largest[tile][lane / 4 + 8 * row] = largest;
  }
}

// Of the scores of `num_tiles` tiles.
template <int kHeadDim, int kLaneRows>
__device__ float LargestBefore(SplitMemory<kHeadDim, kLaneRows>& memory, int num_tiles, int row) {
  float largest = -INFINITY;
  for (int tile = 0; tile < num_tiles; ++tile) {
    largest = fmaxf(largest, memory.largest[tile][static_cast<int>(threadIdx.x) % kWarp / 4 + 8 * row]);
  }
  return largest;
}

// Weights of the warp's tile.
template <typename T, int kHeadDim, int kLaneRows>
__device__ void WeighOwnTile(float scale_log2, int tile, SplitMemory<kHeadDim, kLaneRows>& memory,
                             TileScores& scores) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int row = 0; row < kLaneRows; ++row) {
    const int place = lane / 4 + 8 * row;
    const float before = LargestBefore(memory, tile, row);
    const float rescale =
        WeighRow(row, scale_log2, before, fmaxf(before, memory.largest[tile][place]), scores);
    if (lane % 4 == 0) memory.rescale[tile][place] = rescale;
  }
#pragma unroll
  for (int tokens = 0; tokens < kTileTokens / 16; ++tokens) {
    PutPacked(PackWeights<T>(tokens, scores), memory.weights().packed[tile][tokens][lane]);
  }
#pragma unroll
  for (int i = 0; i < kTileTokens / 8; ++i) PutWeights(scores[i], memory.weights().exact[tile][i][lane]);
}

// The sums of the weights of the lane's rows. By one warp.
template <int kHeadDim, int kLaneRows>
__device__ void SumWeights(SplitMemory<kHeadDim, kLaneRows>& memory, int num_tiles,
                           float (&sums)[kLaneRows]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (float& sum : sums) sum = 0.0f;
  for (int tile = 0; tile < num_tiles; ++tile) {
    TileScores weights;
#pragma unroll
    for (int i = 0; i < kTileTokens / 8; ++i) TakeWeights(memory.weights().exact[tile][i][lane], weights[i]);
#pragma unroll
    for (int row = 0; row < kLaneRows; ++row) {
      sums[row] = AddWeights(row, sums[row], memory.rescale[tile][lane / 4 + 8 * row], weights);
    }
  }
#pragma unroll
  for (float& sum : sums) sum = SumOfShares(sum);
}

// 16 columns of a split, as PartialSoftmax has them.
using SplitColumns = float[2][4];

template <typename T, int kHeadDim, int kLaneRows>
__device__ void SumColumns(SplitMemory<kHeadDim, kLaneRows>& memory, int num_tiles, int columns,
                           SplitColumns& sums) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (auto& column : sums) column[0] = column[1] = column[2] = column[3] = 0.0f;
  for (int tile = 0; tile < num_tiles; ++tile) {
    const float rescale[2] = {memory.rescale[tile][lane / 4],
                              kLaneRows == 1 ? 1.0f : memory.rescale[tile][lane / 4 + 8 * (kLaneRows - 1)]};
    Rescale(rescale, sums);
#pragma unroll
    for (int tokens = 0; tokens < kTileTokens / 16; ++tokens) {
      AddColumns<T, kHeadDim>(TakePacked(memory.weights().packed[tile][tokens][lane]), tokens, columns,
                              SharedAddress(memory.values) + tile * kTileBytes<kHeadDim>, sums[0], sums[1]);
    }
  }
}

template <typename T, int kHeadDim, int kLaneRows>
__device__ void WriteColumns(const AttentionLaunch<T>& launch, const LaneRows& lane_rows,
                             const SplitPlace& place, bool whole, int columns,
                             SplitMemory<kHeadDim, kLaneRows>& memory, const SplitColumns& sums) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < kLaneRows; ++i) {
    if (lane_rows.offsets[i] < 0) continue;
    const int row = lane / 4 + 8 * i, column = 16 * columns + 2 * (lane % 4);
    const float inverse = whole ? memory.inverse[row] : 0.0f;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float low = sums[j][2 * i], high = sums[j][2 * i + 1];
      if (whole) {
        *reinterpret_cast<uint32_t*>(launch.attention.output + lane_rows.offsets[i] + column + 8 * j) =
            NarrowedPair<T>(__fmul_rn(low, inverse), __fmul_rn(high, inverse));
      } else {
        *reinterpret_cast<float2*>(place.values + row * place.stride * kHeadDim + column + 8 * j) =
            make_float2(low, high);
      }
    }
  }
}

// The sums of weights go where they are wanted: to the other warps, or to the merge. By one warp.
template <int kHeadDim, int kLaneRows>
__device__ void PublishSums(const LaneRows& lane_rows, const SplitPlace& place, bool whole, int num_tiles,
                            SplitMemory<kHeadDim, kLaneRows>& memory) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float sums[kLaneRows];
  SumWeights(memory, num_tiles, sums);
#pragma unroll
  for (int i = 0; i < kLaneRows; ++i) {
    if (lane % 4 != 0 || lane_rows.offsets[i] < 0) continue;
    const int row = lane / 4 + 8 * i;
    if (whole) {
      memory.inverse[row] = InverseOfSum(sums[i]);
    } else {
      place.scales[row * place.stride] = make_float2(LargestBefore(memory, num_tiles, i), sums[i]);
    }
  }
}

// Computes an item whose copies are under way, keys and values as a group each; `whole`: its row has no other.
// `queries()` gives the queries, after the block's first barrier.
template <typename T, int kHeadDim, int kLaneRows, typename Queries>
__device__ void AttendSplit(const AttentionLaunch<T>& launch, const AttentionItem& item,
                            const LaneRows& lane_rows, bool whole, const SplitPlace& place, Queries queries,
                            SplitMemory<kHeadDim, kLaneRows>& memory) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int num_tiles = (item.last_token - item.first_token) / kTileTokens + 1;
  TileScores scores;
  WaitForCopies<1>();
  __syncthreads();
  if (warp < num_tiles) ScoreOwnTile<T>(item, queries(), lane_rows.positions, warp, memory, scores);
  __syncthreads();  // keys have been read, and the largest of all tiles are there
  if (warp < num_tiles) WeighOwnTile<T>(launch.scale_log2, warp, memory, scores);
  WaitForCopies<0>();
  __syncthreads();
  SplitColumns sums;
  const bool has_columns = warp < kHeadDim / 16;
  if (has_columns) SumColumns<T>(memory, num_tiles, warp, sums);
  if (warp == kSplitWarps - 1) PublishSums(lane_rows, place, whole, num_tiles, memory);
  __syncthreads();  // inverse sums are there
  if (has_columns) WriteColumns(launch, lane_rows, place, whole, warp, memory, sums);
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ATTENTION_SPLIT_CUH_
