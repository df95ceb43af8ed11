// Decoding rows by warps, each a split after another, where many rows or long ones keep a device busy so. T is what is
// stored: bfloat16 or float16.
#ifndef WARPSMITH_CORE_KERNELS_ATTENTION_ROWS_CUH_
#define WARPSMITH_CORE_KERNELS_ATTENTION_ROWS_CUH_

#include <cstdint>

#include "core/kernels/attention_items.cuh"
#include "core/kernels/attention_tile.cuh"
#include "core/kernels/attention_tile_loader.cuh"
#include "core/kernels/item_walk.cuh"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/stored_pair.cuh"

namespace warpsmith {

template <int kHeadDim>
inline constexpr int kTilesBytes = kTileStages * 2 * kTileBytes<kHeadDim>;

template <typename T, int kHeadDim>
__device__ void LoadItemQueries(const PagedAttention<T>& attention, const LaneRows& lane_rows,
                                QueryRows<kHeadDim>& queries) {
  const T* const rows[2] = {lane_rows.offsets[0] < 0 ? nullptr : attention.queries + lane_rows.offsets[0],
                            lane_rows.offsets[1] < 0 ? nullptr : attention.queries + lane_rows.offsets[1]};
  LoadQueries(rows, queries);
}

// Adds the tile whose keys are at `keys`, and values behind them, to a warp's rows. Its first token is `first`; a row
// sees tokens up to its position, of which `warp_first` is the least.
template <typename T, int kHeadDim>
__device__ void AttendTile(float scale_log2, const QueryRows<kHeadDim>& queries, const int (&positions)[2],
                           int warp_first, int first, uint32_t keys, PartialSoftmax<kHeadDim>& softmax) {
  TileScores scores;
  ScoreTile<T>(queries, keys, scores);
  if (first + kTileTokens - 1 > warp_first) HideLaterTokens(first, positions, scores);
  WeighTile(scale_log2, scores, softmax);
  AddValues<T>(scores, keys + kTileBytes<kHeadDim>, softmax);
}

template <typename T, int kHeadDim>
__device__ void WriteOutput(const PagedAttention<T>& attention, const LaneRows& lane_rows,
                            const PartialSoftmax<kHeadDim>& softmax) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (lane_rows.offsets[i] < 0) continue;
    const float inverse = InverseOfSum(softmax.sum[i]);
    T* const to = attention.output + lane_rows.offsets[i] + 2 * (threadIdx.x % 4);
#pragma unroll
    for (int j = 0; j < kHeadDim / 8; ++j) {
      const float(&column)[4] = softmax.values[j];
      *reinterpret_cast<uint32_t*>(to + 8 * j) =
          NarrowedPair<T>(__fmul_rn(column[2 * i], inverse), __fmul_rn(column[2 * i + 1], inverse));
    }
  }
}

template <typename T, int kHeadDim>
__device__ void WriteSums(const AttentionLaunch<T>& launch, const LaneRows& lane_rows,
                          const AttentionItem& item, const PartialSoftmax<kHeadDim>& softmax) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (lane_rows.offsets[i] < 0) continue;
    const int64_t at = PlaceOfSums<kHeadDim>(launch, lane_rows.offsets[i], item);
    float* const to = launch.sums.values + at * kHeadDim + 2 * (threadIdx.x % 4);
#pragma unroll
    for (int j = 0; j < kHeadDim / 8; ++j) {
      *reinterpret_cast<float2*>(to + 8 * j) =
          make_float2(softmax.values[j][2 * i], softmax.values[j][2 * i + 1]);
    }
    if (threadIdx.x % 4 == 0) launch.sums.scales[at] = make_float2(softmax.largest[i], softmax.sum[i]);
  }
}

// The items of a warp, each `step`th from `first`, whose tiles come without a pause from one to the next. `shared`:
// kTilesBytes, of the warp alone.
template <typename T, int kHeadDim>
class RowItems {
 public:
  __device__ RowItems(const AttentionLaunch<T>& launch, int64_t first, int64_t step, unsigned char* shared)
      : launch_(launch),
        first_(first),
        step_(step),
        tiles_(SharedAddress(shared)),
        walk_(launch.attention.num_queries, ItemsOfQuery{launch.attention}),
        loader_(launch.attention, tiles_) {}

  __device__ void AttendAll() {
    has_next_ = Find(first_, next_);
    if (has_next_) BeginFirst();
    WaitForFormer();
    for (int64_t i = first_ + step_; has_next_; i += step_) {
      const AttentionItem item = next_;
      has_next_ = Find(i, next_);
      has_begun_next_ = false;
      Attend(item);
    }
  }

 private:
  struct ItemsOfQuery {
    const PagedAttention<T>& attention;
    __device__ int operator()(int query) const { return ItemsOf<kDecodeWarps>(attention, query); }
  };

  __device__ bool Find(int64_t i, AttentionItem& item) {
    const int heads = static_cast<int>(launch_.attention.num_kv_heads);
    // Items beside each other are the heads of the same tokens, which lie beside each other.
    const WalkedItem found = walk_.Find(i / heads);
    if (found.query < 0) return false;
    item = ItemAt<kDecodeWarps>(launch_.attention, found.query, found.index, static_cast<int>(i % heads));
    return true;
  }

  // The former kernel may write the entry of the item's position, but none before it.
  __device__ void BeginFirst() {
    loader_.Begin(next_);
    const int position = launch_.attention.positions[next_.query];
    for (int i = 0; i < kTileStages - 1; ++i) {
      if (loader_.HasTile() && loader_.NextHolds(position)) WaitForFormer();
      loader_.Start();
    }
  }

  // Of this item or the next.
  __device__ void StartTile() {
    if (!loader_.HasTile() && has_next_ && !has_begun_next_) {
      loader_.Begin(next_);
      has_begun_next_ = true;
    }
    loader_.Start();
  }

  __device__ void Attend(const AttentionItem& item) {
    const LaneRows lane_rows = LaneRowsOf(launch_.attention, item, 0);
    QueryRows<kHeadDim> queries;
    LoadItemQueries(launch_.attention, lane_rows, queries);
    PartialSoftmax<kHeadDim> softmax;
    softmax.Clear();
    for (int first = item.first_token; first <= item.last_token; first += kTileTokens) {
      // Nothing may have been started behind the only tile that is ahead.
      if (loader_.num_ahead() > 1) {
        WaitForCopies<kTileStages - 2>();
      } else {
        WaitForCopies<0>();
      }
      __syncwarp();  // the tile is there for all, and all have done with the one before, whose place is next
      loader_.Take();
      StartTile();
      AttendTile<T>(launch_.scale_log2, queries, lane_rows.positions, item.last_token, first,
                    tiles_ + stage_ * 2 * kTileBytes<kHeadDim>, softmax);
      stage_ = stage_ + 1 == kTileStages ? 0 : stage_ + 1;
    }
    softmax.SumOverColumns();
    if (IsWhole(launch_, item)) {
      WriteOutput(launch_.attention, lane_rows, softmax);
    } else {
      WriteSums(launch_, lane_rows, item, softmax);
    }
  }

  const AttentionLaunch<T>& launch_;
  const int64_t first_, step_;
  const uint32_t tiles_;
  ItemWalk<ItemsOfQuery> walk_;
  AttentionTileLoader<T, kHeadDim, kDecodeWarps> loader_;
  AttentionItem next_;  // where has_next_
  bool has_next_ = false, has_begun_next_ = false;
  int stage_ = 0;
};

template <typename T, int kHeadDim>
__global__ void __launch_bounds__(kWarp) RowsKernel(const __grid_constant__ AttentionLaunch<T> launch) {
  extern __shared__ __align__(128) unsigned char shared[];
  LetNextStart();
  RowItems<T, kHeadDim>(launch, blockIdx.x, gridDim.x, shared).AttendAll();
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ATTENTION_ROWS_CUH_
