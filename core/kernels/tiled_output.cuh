// Where the sums of a linear layer of many rows go: to a buffer in shared memory, in the layout of y, from which the
// copy engine writes them; float32 goes to y directly.
#ifndef WARPSMITH_CORE_KERNELS_TILED_OUTPUT_CUH_
#define WARPSMITH_CORE_KERNELS_TILED_OUTPUT_CUH_

#include <algorithm>
#include <cstdint>

#include "core/kernels/depth_parts.h"
#include "core/kernels/hopper.cuh"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/stored_pair.cuh"
#include "core/kernels/stored_vectors.cuh"
#include "core/kernels/swiglu.cuh"
#include "core/kernels/swiglu.h"
#include "core/kernels/tile_plan.h"
#include "core/kernels/warpgroup_products.cuh"

namespace warpsmith {

enum class OutputKind { kStored, kSwiGlu, kFloat32 };

// Of x and weights in T, bfloat16 or float16. A block has kRows rows of x and kColumns columns of y, 64 for each
// warpgroup that sums. Its memory holds stages of tiles, then each warpgroup's buffers.
template <typename T, int kTileRows, int kTileColumns, bool kParts, OutputKind kKind>
struct TiledShape {
  using Element = T;
  static constexpr int kRows = kTileRows;
  static constexpr bool kSeveralParts = kParts;
  static constexpr OutputKind kOutput = kKind;

  static constexpr int kColumns = kTileColumns;
  static constexpr int kGroups = kColumns / kGroupColumns;
  static constexpr int kThreads = (kGroups + 1) * kWarpgroup;  // the last warpgroup copies
  static constexpr int kSums = kRows / 2;                      // of a thread
  // Of each thread, of a multiprocessor's 65,536. With one warpgroup that sums all can have what it needs.
  static constexpr bool kMovesRegisters = kGroups > 1;
  static constexpr int kSumRegisters = kGroups == 2 ? 232 : 152, kCopierRegisters = 40;

  static constexpr int kWeightBytes = kColumns * kDepth * 2;
  static constexpr int kStageBytes = kWeightBytes + kRows * kDepth * 2;
  // A row of a warpgroup's results, or what a pair of gate and up leaves of it.
  static constexpr int kResultColumns = kOutput == OutputKind::kSwiGlu ? kGroupColumns / 2 : kGroupColumns;
  static constexpr int kResultBytes = kResultColumns * 2;
  // Results of many rows go through two smaller buffers by turns, which leaves place for stages.
  static constexpr bool kHasChunks = kOutput == OutputKind::kStored && kRows > 208;
  static constexpr int kChunks = kHasChunks ? 4 : 1;
  static constexpr int kChunkRows = kRows / kChunks;
  static constexpr int kBuffers = kOutput == OutputKind::kFloat32 ? 0 : (kHasChunks ? 2 : 1);
  static constexpr int kBufferBytes = kChunkRows * kResultBytes;
  static constexpr int kGroupBytes = kBuffers * kBufferBytes;

  static constexpr int kStagesMax = 12;
  static constexpr int kBytesMax = (227 << 10) - kTileAlignment - 512;  // without barriers
  static constexpr int kStages = std::min(kStagesMax, (kBytesMax - kGroups * kGroupBytes) / kStageBytes);
  static constexpr int kBytes = kStages * kStageBytes + kGroups * kGroupBytes + kTileAlignment;
  static_assert(kStages >= 4 && kChunkRows % 16 == 0 && kBufferBytes % kTileAlignment == 0);
};

// Of y, `columns` a row: bias and residual may be null.
struct TiledOutput {
  int rows;
  int columns;
  const void* bias;
  const void* residual;
  void* y;
};

// A stage of a pipeline and the parity of its phase.
template <int kStages>
struct PipelinePlace {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void Advance() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

// One thread's stores of a warpgroup's results. A buffer is offered when it is free, with the residual if there is one.
template <typename T, typename Walk, typename Barriers>
class TileWriter {
 public:
  __device__ TileWriter(int group, const CUtensorMap* residual, const CUtensorMap* y, const Walk& walk,
                        bool has_residual, unsigned char* buffers, Barriers& barriers)
      : group_(group),
        residual_(residual),
        y_(y),
        has_residual_(has_residual),
        buffers_(buffers + group * T::kGroupBytes),
        barriers_(barriers),
        walk_(walk),
        offered_(walk) {}

  __device__ void WriteAll() {
    WaitForFormer();
    for (int i = 0; i < T::kBuffers; ++i) Offer(i);
    PipelinePlace<T::kBuffers> place;
    for (; walk_.HasTile(); walk_.Next()) {
      for (int chunk = 0; chunk < T::kChunks; ++chunk) {
        Wait(&barriers_.staged[group_][place.stage], place.parity);
        StoreTile(y_, ColumnOf(walk_), RowOf(walk_, chunk), buffers_ + place.stage * T::kBufferBytes);
        CommitStores();
        WaitForStoresToRead();
        Offer(place.stage);
        place.Advance();
      }
    }
    WaitForStores();
  }

 private:
  __device__ int ColumnOf(const Walk& walk) const {
    return (walk.Tile().column * T::kGroups + group_) * T::kResultColumns;
  }
  __device__ static int RowOf(const Walk& walk, int chunk) {
    return walk.Tile().row * T::kRows + chunk * T::kChunkRows;
  }

  __device__ void Offer(int buffer) {
    uint64_t* const ready = &barriers_.ready[group_][buffer];
    if (!has_residual_ || !offered_.HasTile()) {
      Arrive(ready);
      return;
    }
    ArriveExpecting(ready, T::kBufferBytes);
    CopyTile(buffers_ + buffer * T::kBufferBytes, residual_, ColumnOf(offered_),
             RowOf(offered_, offered_chunk_), ready, CachePolicy::kEvictFirst);
    if (++offered_chunk_ < T::kChunks) return;
    offered_chunk_ = 0;
    offered_.Next();
  }

  const int group_;
  const CUtensorMap* const residual_;
  const CUtensorMap* const y_;
  const bool has_residual_;
  unsigned char* const buffers_;
  Barriers& barriers_;
  Walk walk_;
  Walk offered_;  // the tile whose residual comes next
  int offered_chunk_ = 0;
};

// Results of a warpgroup's sums, tile after tile.
template <typename T, typename Barriers>
class TileStager {
  using Element = typename T::Element;

 public:
  __device__ TileStager(int group, const TiledOutput& output, unsigned char* buffers, Barriers& barriers)
      : group_(group),
        warp_(threadIdx.x % kWarpgroup / kLanes),
        lane_(threadIdx.x % kLanes),
        output_(output),
        buffers_(buffers + group * T::kGroupBytes),
        barriers_(barriers) {}

  __device__ void Stage(TilePlace tile, float (&sums)[T::kSums]) {
    const int column = (tile.column * T::kGroups + group_) * kGroupColumns + warp_ * 16 + lane_ / 4;
    if (output_.bias != nullptr) AddBias(column, sums);
    if constexpr (T::kOutput == OutputKind::kFloat32) {
      StoreFloats(tile.row * T::kRows + lane_ % 4 * 2, column, sums);
    } else {
#pragma unroll
      for (int chunk = 0; chunk < T::kChunks; ++chunk) {
        Wait(&barriers_.ready[group_][place_.stage], place_.parity);
        unsigned char* const buffer = buffers_ + place_.stage * T::kBufferBytes;
        if constexpr (T::kOutput == OutputKind::kSwiGlu) {
          StageGated(buffer, sums);
        } else {
          StageChunk(chunk, buffer, sums);
        }
        FenceForCopies();
        Arrive(&barriers_.staged[group_][place_.stage]);
        place_.Advance();
      }
    }
  }

 private:
  __device__ void AddBias(int column, float (&sums)[T::kSums]) const {
    const auto* const bias = static_cast<const Element*>(output_.bias);
    const float low = column < output_.columns ? LoadStored(bias + column) : 0.0f;
    const float high = column + 8 < output_.columns ? LoadStored(bias + column + 8) : 0.0f;
#pragma unroll
    for (int i = 0; i < T::kSums; i += 4) {
      sums[i] += low;
      sums[i + 1] += low;
      sums[i + 2] += high;
      sums[i + 3] += high;
    }
  }

  // A matrix of 8 rows by 8 columns of y is 16 bytes of 8 of the buffer's rows, which are 128 bytes swizzled in atoms
  // of 8 rows. A warp has two such columns.
  __device__ void StageChunk(int chunk, unsigned char* buffer, const float (&sums)[T::kSums]) const {
    const int matrix = lane_ / 8, row = lane_ % 8;
    const uint32_t address = SharedAddress(buffer) + (matrix / 2 * 8 + row) * T::kResultBytes +
                             ((warp_ * 2 + matrix % 2) ^ row) * 16;
#pragma unroll
    for (int i = 0; i < T::kChunkRows / 16; ++i) {
      const float* const from = sums + (chunk * T::kChunkRows / 16 + i) * 8;
      const uint32_t to = address + i * 16 * T::kResultBytes;
      uint32_t results[4], residual[4];
      if (output_.residual != nullptr) LoadMatricesTransposed(to, residual);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float2 pair = {from[2 * j], from[2 * j + 1]};
        if (output_.residual != nullptr) {
          const float2 added = WidenedPair<Element>(residual[j]);
          pair.x += added.x;
          pair.y += added.y;
        }
        results[j] = NarrowedPair<Element>(pair.x, pair.y);
      }
      StoreMatricesTransposed(to, results);
    }
  }

  // The rows of a warpgroup's tile of weights lie so that a lane's first two sums of four are gates and the others the
  // up of the same columns. A row of the buffer is 64 bytes, swizzled in atoms of 8 rows, and a warp has 16 of them.
  __device__ void StageGated(unsigned char* buffer, const float (&sums)[T::kSums]) const {
    const int row = lane_ % 16;
    const uint32_t address = SharedAddress(buffer) + row * T::kResultBytes + (warp_ ^ row / 2 % 4) * 16;
#pragma unroll
    for (int i = 0; i < T::kRows / 16; ++i) {
      const float* const from = sums + i * 8;
      const uint32_t results[2] = {
          NarrowedPair<Element>(Gated(from[0], from[2]), Gated(from[1], from[3])),
          NarrowedPair<Element>(Gated(from[4], from[6]), Gated(from[5], from[7])),
      };
      StoreMatricesTransposed(address + i * 16 * T::kResultBytes, results);
    }
  }

  // Both as a product without SwiGLU would have stored them.
  __device__ static float Gated(float gate, float up) {
    return SwiGluOf<Element>(RoundToStored<Element>(gate), RoundToStored<Element>(up));
  }

  // Eight lanes write 32 bytes of a row together.
  __device__ void StoreFloats(int first_row, int column, const float (&sums)[T::kSums]) const {
    const auto store = [&](int row, int at, float value) {
      if (row >= output_.rows || at >= output_.columns) return;
      const int64_t place = static_cast<int64_t>(row) * output_.columns + at;
      if (output_.residual != nullptr) value += static_cast<const float*>(output_.residual)[place];
      static_cast<float*>(output_.y)[place] = value;
    };
#pragma unroll
    for (int i = 0; i < T::kRows / 8; ++i) {
      const int row = first_row + i * 8;
      store(row, column, sums[4 * i]);
      store(row + 1, column, sums[4 * i + 1]);
      store(row, column + 8, sums[4 * i + 2]);
      store(row + 1, column + 8, sums[4 * i + 3]);
    }
  }

  const int group_, warp_, lane_;
  const TiledOutput& output_;
  unsigned char* const buffers_;
  Barriers& barriers_;
  PipelinePlace<T::kBuffers> place_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TILED_OUTPUT_CUH_
