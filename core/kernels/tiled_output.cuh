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

// Of x and weights in T, bfloat16 or float16. A block has kRows rows of x and kColumns columns of y. A warpgroup that
// sums has kBlocks blocks of 64 rows of the first operand and all of the second: one block of tiles that all warpgroups
// share, or with two turns a whole tile. The block's memory holds stages of tiles, then each warpgroup's buffers,
// through which its results go in pieces.
template <typename T, int kTileRows, int kTileColumns, FirstOperand kFirst, int kGroupTurns, bool kParts,
          OutputKind kKind>
struct TiledShape {
  using Element = T;
  static constexpr int kRows = kTileRows;
  static constexpr int kColumns = kTileColumns;
  static constexpr bool kXFirst = kFirst == FirstOperand::kX;
  static constexpr int kTurns = kGroupTurns;
  static constexpr bool kSeveralParts = kParts;
  static constexpr OutputKind kOutput = kKind;

  static constexpr int kTileBlocks = (kXFirst ? kRows : kColumns) / kProductRows;
  static constexpr int kBlocks = kTurns > 1 ? kTileBlocks : 1;
  static constexpr int kTileGroups = kTileBlocks / kBlocks;
  static constexpr int kGroups = kTileGroups * kTurns;
  static constexpr int kThreads = (kGroups + 1) * kWarpgroup;     // the last warpgroup copies
  static constexpr int kSums = (kXFirst ? kColumns : kRows) / 2;  // of a thread and a block
  // Of each thread, of a multiprocessor's 65,536. With one warpgroup that sums all can have what it needs.
  static constexpr bool kMovesRegisters = kGroups > 1;
  static constexpr int kSumRegisters = kGroups == 2 ? 232 : 152, kCopierRegisters = 40;

  static constexpr int kWeightBytes = kColumns * kDepth * 2;
  static constexpr int kStageBytes = kWeightBytes + kRows * kDepth * 2;
  // Pieces have 64 columns, or where x is first and columns are no multiple of that, 32. A row is what pairs of gate
  // and up leave of it.
  static constexpr int kPieceColumns = kXFirst && kColumns % 64 != 0 ? 32 : 64;
  static constexpr int kResultColumns = kOutput == OutputKind::kSwiGlu ? kPieceColumns / 2 : kPieceColumns;
  static constexpr int kResultBytes = kResultColumns * 2;
  // Results of many rows go through two smaller buffers by turns, which leaves place for stages.
  static constexpr bool kHasChunks = kOutput == OutputKind::kStored && kRows > 208;
  // The pieces of a warpgroup's block: of some rows where its columns are 64, of some columns where its rows are.
  static constexpr int kBlockPieces = kXFirst ? kColumns / kPieceColumns : (kHasChunks ? 4 : 1);
  static constexpr int kPieces = kBlocks * kBlockPieces;
  static constexpr int kPieceRows = kXFirst ? kProductRows : kRows / kBlockPieces;
  static constexpr int kBuffers =
      kOutput == OutputKind::kFloat32 ? 0 : (kHasChunks || (kXFirst && kTurns == 1) ? 2 : 1);
  static constexpr int kBufferBytes = kPieceRows * kResultBytes;
  static constexpr int kGroupBytes = kBuffers * kBufferBytes;

  static constexpr int kStagesMax = 12;
  static constexpr int kBytesMax = (227 << 10) - kTileAlignment - 512;  // without barriers
  static constexpr int kStages = std::min(kStagesMax, (kBytesMax - kGroups * kGroupBytes) / kStageBytes);
  static constexpr int kBytes = kStages * kStageBytes + kGroups * kGroupBytes + kTileAlignment;
  static_assert(kStages >= 4 && kPieceRows % 8 == 0 && kBufferBytes % 512 == 0);
  static_assert(kResultBytes == 128 || kResultBytes == 64);
  static_assert(kTurns == 1 || !kSeveralParts);
};

// Where a piece of a warpgroup's results lies in y, of what SwiGLU leaves.
template <typename T>
struct Piece {
  __device__ static int RowOf(TilePlace tile, int group, int piece) {
    const int first = tile.row * T::kRows;
    if constexpr (T::kXFirst)
      return first + (group % T::kTileGroups * T::kBlocks + piece / T::kBlockPieces) * kProductRows;
    return first + piece % T::kBlockPieces * T::kPieceRows;
  }
  __device__ static int ColumnOf(TilePlace tile, int group, int piece) {
    if constexpr (T::kXFirst)
      return (tile.column * T::kBlockPieces + piece % T::kBlockPieces) * T::kResultColumns;
    const int first = (tile.column * T::kTileGroups + group % T::kTileGroups) * T::kBlocks;
    return (first + piece / T::kBlockPieces) * T::kResultColumns;
  }
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
  // As many stages as another's tile takes.
  __device__ void Skip(int stages) {
    stage += stages;
    parity ^= stage / kStages & 1;
    stage %= kStages;
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
      const TilePlace tile = walk_.Tile();
      for (int piece = 0; piece < T::kPieces; ++piece) {
        Wait(&barriers_.staged[group_][place.stage], place.parity);
        StoreTile(y_, Piece<T>::ColumnOf(tile, group_, piece), Piece<T>::RowOf(tile, group_, piece),
                  buffers_ + place.stage * T::kBufferBytes);
        CommitStores();
        WaitForStoresToRead();
        Offer(place.stage);
        place.Advance();
      }
    }
    WaitForStores();
  }

 private:
  __device__ void Offer(int buffer) {
    uint64_t* const ready = &barriers_.ready[group_][buffer];
    if (!has_residual_ || !offered_.HasTile()) {
      Arrive(ready);
      return;
    }
    ArriveExpecting(ready, T::kBufferBytes);
    const TilePlace tile = offered_.Tile();
    CopyTile(buffers_ + buffer * T::kBufferBytes, residual_, Piece<T>::ColumnOf(tile, group_, offered_piece_),
             Piece<T>::RowOf(tile, group_, offered_piece_), ready, CachePolicy::kEvictFirst);
    if (++offered_piece_ < T::kPieces) return;
    offered_piece_ = 0;
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
  int offered_piece_ = 0;
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

  __device__ void Stage(TilePlace tile, float (&sums)[T::kBlocks][T::kSums]) {
    if (output_.bias != nullptr) AddBias(tile, sums);
    if constexpr (T::kOutput == OutputKind::kFloat32) {
#pragma unroll
      for (int block = 0; block < T::kBlocks; ++block) StoreFloats(tile, block, sums[block]);
    } else {
#pragma unroll
      for (int piece = 0; piece < T::kPieces; ++piece) {
        Wait(&barriers_.ready[group_][place_.stage], place_.parity);
        unsigned char* const buffer = buffers_ + place_.stage * T::kBufferBytes;
        constexpr int kSumsOfPiece = T::kSums / T::kBlockPieces;
        const float* const from = sums[piece / T::kBlockPieces] + piece % T::kBlockPieces * kSumsOfPiece;
        if constexpr (T::kXFirst) {
          StageOfRows(from, buffer);
        } else if constexpr (T::kOutput == OutputKind::kSwiGlu) {
          StageGated(from, buffer);
        } else {
          StageOfColumns(from, buffer);
        }
        FenceForCopies();
        Arrive(&barriers_.staged[group_][place_.stage]);
        place_.Advance();
      }
    }
  }

 private:
  __device__ int FirstColumnOf(TilePlace tile, int block) const {
    const int first = (tile.column * T::kTileGroups + group_ % T::kTileGroups) * T::kBlocks;
    return (first + block) * kProductRows + warp_ * 16 + lane_ / 4;
  }

  __device__ float BiasOf(int column) const {
    const auto* const bias = static_cast<const Element*>(output_.bias);
    return column < output_.columns ? LoadStored(bias + column) : 0.0f;
  }

  __device__ void AddBias(TilePlace tile, float (&sums)[T::kBlocks][T::kSums]) const {
#pragma unroll
    for (int i = 0; i < T::kBlocks * T::kSums; i += 4) {
      float* const four = sums[i / T::kSums] + i % T::kSums;
      float added[4];
      if constexpr (T::kXFirst) {
        const int column = tile.column * T::kColumns + i % T::kSums * 2 + lane_ % 4 * 2;
        added[0] = added[2] = BiasOf(column), added[1] = added[3] = BiasOf(column + 1);
      } else {
        const int column = FirstColumnOf(tile, i / T::kSums);
        added[0] = added[1] = BiasOf(column), added[2] = added[3] = BiasOf(column + 8);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) four[j] += added[j];
    }
  }

  // Sums `pair` and the next, with what the residual holds of them.
  __device__ uint32_t Result(const float* pair, uint32_t residual) const {
    if (output_.residual == nullptr) return NarrowedPair<Element>(pair[0], pair[1]);
    const float2 added = WidenedPair<Element>(residual);
    return NarrowedPair<Element>(pair[0] + added.x, pair[1] + added.y);
  }

  // A matrix of 8 rows by 8 columns of y is 16 bytes of 8 of the buffer's rows, which are 128 bytes swizzled in atoms
  // of 8 rows. A warp has two such columns.
  __device__ void StageOfColumns(const float* sums, unsigned char* buffer) const {
    const int matrix = lane_ / 8, row = lane_ % 8;
    const uint32_t address = SharedAddress(buffer) + (matrix / 2 * 8 + row) * T::kResultBytes +
                             ((warp_ * 2 + matrix % 2) ^ row) * 16;
#pragma unroll
    for (int i = 0; i < T::kPieceRows / 16; ++i) {
      const uint32_t to = address + i * 16 * T::kResultBytes;
      uint32_t results[4], residual[4] = {};
      if (output_.residual != nullptr) LoadMatricesTransposed(to, residual);
#pragma unroll
      for (int j = 0; j < 4; ++j) results[j] = Result(sums + i * 8 + 2 * j, residual[j]);
      StoreMatricesTransposed(to, results);
    }
    if constexpr (T::kPieceRows % 16 != 0) {
      // Lanes from 16 on give the addresses of the others.
      constexpr int kRest = T::kPieceRows / 16;
      const uint32_t to = address - matrix / 2 * 8 * T::kResultBytes + kRest * 16 * T::kResultBytes;
      uint32_t residual[4] = {};
      if (output_.residual != nullptr) LoadMatricesTransposed(to, residual);
      const uint32_t results[2] = {Result(sums + kRest * 8, residual[0]),
                                   Result(sums + kRest * 8 + 2, residual[1])};
      StoreMatricesTransposed(to, results);
    }
  }

  // The rows of a warpgroup's tile of weights lie so that a lane's first two sums of four are gates and the others the
  // up of the same columns. A row of the buffer is 64 bytes, swizzled in atoms of 8 rows, and a warp has 16 of them.
  __device__ void StageGated(const float* sums, unsigned char* buffer) const {
    const int row = lane_ % 16;
    const uint32_t address = SharedAddress(buffer) + row * T::kResultBytes + (warp_ ^ row / 2 % 4) * 16;
#pragma unroll
    for (int i = 0; i < T::kPieceRows / 16; ++i) {
      const float* const from = sums + i * 8;
      const uint32_t results[2] = {GatedPair(from, from + 2), GatedPair(from + 4, from + 6)};
      StoreMatricesTransposed(address + i * 16 * T::kResultBytes, results);
    }
    if constexpr (T::kPieceRows % 16 != 0) {
      constexpr int kRest = T::kPieceRows / 16;
      const float* const from = sums + kRest * 8;
      StoreMatrixTransposed(address + kRest * 16 * T::kResultBytes, GatedPair(from, from + 2));
    }
  }

  // Of 64 rows by 64 columns of a product whose first operand is x, of which a warp has 16 rows. Of gates and ups,
  // which lie in turns of 8 columns, half as many columns are left, in rows of 64 bytes.
  __device__ void StageOfRows(const float* sums, unsigned char* buffer) const {
    const int matrix = lane_ / 8, row = warp_ * 16 + lane_ % 16;
    const uint32_t address = SharedAddress(buffer) + row * T::kResultBytes;
    constexpr bool kIsGated = T::kOutput == OutputKind::kSwiGlu;
    const int swizzle = T::kResultBytes == 64 ? row / 2 % 4 : row % 8;
#pragma unroll
    for (int i = 0; i < T::kResultColumns / 16; ++i) {
      const uint32_t to = address + ((i * 2 + matrix / 2) ^ swizzle) * 16;
      uint32_t results[4], residual[4] = {};
      if (!kIsGated && output_.residual != nullptr) LoadMatrices(to, residual);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if constexpr (kIsGated) {
          const float* const gate = sums + i * 16 + j / 2 * 8 + j % 2 * 2;
          results[j] = GatedPair(gate, gate + 4);
        } else {
          results[j] = Result(sums + i * 8 + 2 * j, residual[j]);
        }
      }
      StoreMatrices(to, results);
    }
  }

  __device__ static uint32_t GatedPair(const float* gates, const float* ups) {
    return NarrowedPair<Element>(Gated(gates[0], ups[0]), Gated(gates[1], ups[1]));
  }

  // Both as a product without SwiGLU would have stored them.
  __device__ static float Gated(float gate, float up) {
    return SwiGluOf<Element>(RoundToStored<Element>(gate), RoundToStored<Element>(up));
  }

  // Eight lanes write 32 bytes of a row together.
  __device__ void StoreFloats(TilePlace tile, int block, const float (&sums)[T::kSums]) const {
    const int first_row = tile.row * T::kRows + lane_ % 4 * 2, column = FirstColumnOf(tile, block);
    const auto store = [&](int row, int at, float value) {
      if (row >= output_.rows || at >= output_.columns) return;
      const int64_t place = static_cast<int64_t>(row) * output_.columns + at;
      if (output_.residual != nullptr) value += static_cast<const float*>(output_.residual)[place];
      static_cast<float*>(output_.y)[place] = value;
    };
#pragma unroll
    for (int i = 0; i < T::kSums / 4; ++i) {
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
