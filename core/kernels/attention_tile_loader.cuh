// How the keys and values of pages come to where a block reads them.
#ifndef WARPSMITH_CORE_KERNELS_ATTENTION_TILE_LOADER_CUH_
#define WARPSMITH_CORE_KERNELS_ATTENTION_TILE_LOADER_CUH_

#include <cstdint>

#include "core/kernels/attention_items.cuh"
#include "core/kernels/attention_tile.cuh"
#include "core/kernels/paged_attention_cuda.h"

namespace warpsmith {

inline constexpr int kTileStages = 3;

// Brings the tiles of an item into shared memory at `tiles`, in order and at most kTileStages - 1 ahead of their
// reader: keys and then values of each, in one of kTileStages places after the other. Then those of another item, in
// the places that follow. Tokens behind the last are zeros, so that what their memory holds, perhaps NaN, has no
// effect. All threads of kWarps warps, which share them, take part.
template <typename T, int kHeadDim, int kWarps>
class AttentionTileLoader {
 public:
  __device__ AttentionTileLoader(const PagedAttention<T>& attention, uint32_t tiles)
      : attention_(attention),
        page_tokens_(static_cast<int>(attention.page_tokens)),
        row_(ThreadIndex() / kChunksOfRow),
        place_(ThreadIndex() % kChunksOfRow ^ row_ % 8),
        stride_(attention.num_kv_heads * kHeadDim),
        tiles_(tiles) {}

  // `item` begins a split. The tiles of the one before have been started.
  __device__ void Begin(const AttentionItem& item) {
    pages_ = attention_.page_indices + attention_.page_indptr[item.query];
    next_ = item.first_token;
    last_ = item.last_token;
    const int64_t offset = item.head * int64_t{kHeadDim} + ThreadIndex() % kChunksOfRow * kElementsOfChunk;
    keys_ = attention_.key_pages + offset;
    values_ = attention_.value_pages + offset;
  }

  // Whether the item has a tile that was not started.
  __device__ bool HasTile() const { return next_ <= last_; }
  // Whether that one holds the token at `position`.
  __device__ bool NextHolds(int position) const { return position / kTileTokens == next_ / kTileTokens; }
  // Tiles that were started and not taken.
  __device__ int num_ahead() const { return num_ahead_; }
  __device__ void Take() { --num_ahead_; }

  // Starts the copies of the next tile, if there is one, as one group.
  __device__ void Start() {
    if (HasTile()) {
      if (next_ % kAttentionSplitTokens == 0) ReadPages();
      const uint32_t tile = tiles_ + stage_ * 2 * kTileBytes<kHeadDim>;
      const int first_group = next_ % kAttentionSplitTokens / kPageGroupTokens;
#pragma unroll
      for (int group = 0; group < kTileTokens / kPageGroupTokens; ++group) {
        const int64_t entry = __shfl_sync(kWholeWarp, first_entry_, first_group + group);
        int64_t offset = (entry + row_) * stride_;
#pragma unroll
        for (int i = 0; i < kPageGroupTokens; i += kRowsAtOnce) {
          const int first = group * kPageGroupTokens + i;
          const bool present = next_ + first + row_ <= last_;
          // ChunkOffset of row first + row_, whose lower bits are those of row_.
          const uint32_t to =
              tile + (first + row_) * kChunksOfRow * kChunkBytes + (place_ ^ first % 8) * kChunkBytes;
          CopyAsync(to, keys_ + offset, present);
          CopyAsync(to + kTileBytes<kHeadDim>, values_ + offset, present);
          offset += kRowsAtOnce * stride_;
        }
      }
      next_ += kTileTokens;
      stage_ = stage_ + 1 == kTileStages ? 0 : stage_ + 1;
      ++num_ahead_;
    }
    CommitCopies();
  }

 private:
  static constexpr int kChunksOfRow = kHeadDim / kElementsOfChunk;
  static constexpr int kRowsAtOnce = kWarps * kWarp / kChunksOfRow;  // a power of 2

  // Among the threads that share tiles.
  __device__ static int ThreadIndex() { return static_cast<int>(threadIdx.x) % (kWarps * kWarp); }

  // A lane a group of the split: the entry of its first token.
  __device__ void ReadPages() {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int position = next_ + lane * kPageGroupTokens;
    const bool present = lane < kGroupsOfSplit && position <= last_;
    first_entry_ = present ? pages_[position / page_tokens_] * page_tokens_ + position % page_tokens_ : 0;
  }

  const PagedAttention<T>& attention_;
  const int32_t* pages_ = nullptr;
  const T* keys_ = nullptr;
  const T* values_ = nullptr;
  int page_tokens_;
  int row_;    // of those that the block copies at once
  int place_;  // of the chunk in its row
  int next_ = 0, last_ = -1;
  int num_ahead_ = 0;
  int64_t stride_;  // from token to token
  uint32_t tiles_;
  int stage_ = 0;
  int first_entry_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ATTENTION_TILE_LOADER_CUH_
