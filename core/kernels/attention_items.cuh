// What blocks of paged attention work on, and where what they find goes.
#ifndef WARPSMITH_CORE_KERNELS_ATTENTION_ITEMS_CUH_
#define WARPSMITH_CORE_KERNELS_ATTENTION_ITEMS_CUH_

#include <cstdint>

#include "core/kernels/attention_bounds.h"
#include "core/kernels/attention_tile.cuh"
#include "core/kernels/paged_attention_cuda.h"

namespace warpsmith {

inline constexpr int kGroupsOfSplit = kAttentionSplitTokens / kPageGroupTokens;
static_assert(kAttentionSplitTokens % kTileTokens == 0 && kGroupsOfSplit <= kWarp);

inline constexpr int kDecodeWarps = 1;
inline constexpr int kChunkWarps = 4;

// What splits leave behind for MergeKernel, of each row, query head and split.
struct SplitSums {
  float* values;   // [rows, query heads, num_splits_max, head_dim]
  float2* scales;  // [rows, query heads, num_splits_max] largest score and sum of weights
  int64_t num_splits_max;
};

// T is what is stored: bfloat16 or float16.
template <typename T>
struct AttentionLaunch {
  PagedAttention<T> attention;
  SplitSums sums;
  float scale_log2;
};

// Sums lie in the workspace, values before scales.
template <typename T>
AttentionLaunch<T> LaunchOf(const PagedAttention<T>& attention, const PagedAttentionBounds& bounds,
                            void* workspace) {
  constexpr float kLog2OfE = 1.44269504088896341f;
  const int64_t num_splits_max = SplitsMax(bounds);
  const int64_t num_sums = attention.rows * attention.num_kv_heads * attention.group_size * num_splits_max;
  auto* const values = static_cast<float*>(workspace);
  auto* const scales = reinterpret_cast<float2*>(values + num_sums * attention.head_dim);
  return {attention, {values, scales, num_splits_max}, attention.scale * kLog2OfE};
}

// A warp that decodes takes one split; warps that compute a chunk take 64 rows, and all positions before them.
template <int kWarps>
inline constexpr bool kDecodes = kWarps == kDecodeWarps;

// The work of a block. Rows are counted within the query and through the heads of a group: packed row i is query head
// i % group_size of row i / group_size.
struct AttentionItem {
  int query, head;
  int first_row;                 // of the query
  int first_packed, num_packed;  // of the block; of the query
  int first_token, last_token;
};

template <int kWarps, typename T>
__device__ int ItemsOf(const PagedAttention<T>& attention, int query) {
  if constexpr (kDecodes<kWarps>) return attention.positions[query] / kAttentionSplitTokens + 1;
  const int rows = attention.row_indptr[query + 1] - attention.row_indptr[query];
  return (rows * static_cast<int>(attention.group_size) + kWarps * kWarpRows - 1) / (kWarps * kWarpRows);
}

template <int kWarps, typename T>
__device__ AttentionItem ItemAt(const PagedAttention<T>& attention, int query, int index, int head) {
  const int group_size = static_cast<int>(attention.group_size);
  if constexpr (kDecodes<kWarps>) {
    const int first = index * kAttentionSplitTokens;
    const int last = min(first + kAttentionSplitTokens - 1, attention.positions[query]);
    return {query, head, query, 0, group_size, first, last};
  }
  const int first_row = attention.row_indptr[query];
  const int first_packed = index * kWarps * kWarpRows;
  const int num_packed = (attention.row_indptr[query + 1] - first_row) * group_size;
  const int last_row = first_row + (min(first_packed + kWarps * kWarpRows, num_packed) - 1) / group_size;
  return {query, head, first_row, first_packed, num_packed, 0, attention.positions[last_row]};
}

// The two rows of a lane, of the 16 of a warp. Those behind the end of the query have offset -1 and see what the block
// sees.
struct LaneRows {
  int64_t offsets[2];  // of the query head, in queries and output
  int positions[2];
};

template <typename T>
__device__ inline LaneRows LaneRowsOf(const PagedAttention<T>& attention, const AttentionItem& item,
                                      int warp) {
  const int group_size = static_cast<int>(attention.group_size);
  LaneRows lane_rows;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int packed =
        item.first_packed + warp * kWarpRows + static_cast<int>(threadIdx.x) % kWarp / 4 + 8 * i;
    const bool present = packed < item.num_packed;
    const int row = item.first_row + (present ? packed / group_size : 0);
    lane_rows.offsets[i] = present ? QueryHeadOffset(attention, row, item.head, packed % group_size) : -1;
    lane_rows.positions[i] = present ? attention.positions[row] : item.last_token;
  }
  return lane_rows;
}

// Where the sums of a row's query head and of the item's split are.
template <int kHeadDim, typename T>
__device__ int64_t PlaceOfSums(const AttentionLaunch<T>& launch, int64_t offset, const AttentionItem& item) {
  return offset / kHeadDim * launch.sums.num_splits_max + item.first_token / kAttentionSplitTokens;
}

// Whether the sums of the item's split are all that there is of its rows.
template <typename T>
__device__ inline bool IsWhole(const AttentionLaunch<T>& launch, const AttentionItem& item) {
  return item.first_token == 0 && launch.attention.positions[item.query] < kAttentionSplitTokens;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ATTENTION_ITEMS_CUH_
