// How the sum over the depth of a linear layer is cut into parts, in the batch-invariant mode. The cut decides the
// order of additions and so the bits of a result: it is a function of the layer's shape alone, and all kernels keep to
// it.
#ifndef WARPSMITH_CORE_KERNELS_DEPTH_PARTS_H_
#define WARPSMITH_CORE_KERNELS_DEPTH_PARTS_H_

#include <cstdint>

#include "core/kernels/linear.h"

namespace warpsmith {

inline constexpr int kDepth = 64;  // of a tile: 128 bytes of bfloat16, what the copy engine swizzles
inline constexpr int kPartsMax = 8;
inline constexpr int kGroupColumns = 64;  // of a warpgroup: the rows of a product

// The tiles of a part of the depth.
struct DepthPart {
  int first;
  int end;
};

constexpr DepthPart TilesOfPart(int part, int num_parts, int num_tiles) {
  return {num_tiles * part / num_parts, num_tiles * (part + 1) / num_parts};
}

constexpr int64_t Quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

// How a product of few rows is cut into blocks: columns into tiles, the sum over depth into parts, of which a block has
// `block_parts`, each for warps of its own.
struct LinearCut {
  int tile_columns;
  int parts;
  int64_t blocks;
  int block_parts = 1;
};

// The multiprocessors of a Hopper. A constant, so that a device with fewer has the same bits.
inline constexpr int64_t kMultiprocessors = 132;

// The most blocks in clusters of `parts` that surely run at once, one on a multiprocessor. A cluster lies within a
// group of at most 18 multiprocessors, so that clusters of more than two blocks leave some of each group idle.
constexpr int64_t ClusterBlocksMax(int parts) {
  if (parts <= 2) return kMultiprocessors;
  return parts == 4 ? 96 : 64;
}

constexpr LinearCut CutInto(const LinearShape& shape, int tile_columns) {
  constexpr int64_t kTilesMin = 4;  // of a part
  const int64_t column_tiles = Quotient(shape.columns, tile_columns);
  const int64_t tiles = Quotient(shape.depth, kDepth);
  int parts = 1;
  while (parts < kPartsMax && column_tiles * parts * 2 <= ClusterBlocksMax(parts * 2) &&
         tiles >= parts * 2 * kTilesMin)
    parts *= 2;
  return {tile_columns, parts, column_tiles * parts};
}

// A block whose weights have places at once has them before x is there. Then its products alone take time, for each
// waits for the one before it, and two parts beside each other take half of it.
constexpr LinearCut WithBlockParts(LinearCut cut, int64_t tiles) {
  constexpr int kBlockParts = 2;
  constexpr int64_t kWeightsMax = 128 << 10;  // bytes
  const int64_t tiles_of_block = Quotient(tiles, cut.parts);
  if (cut.tile_columns > kGroupColumns || cut.parts * kBlockParts > kPartsMax) return cut;
  if (tiles_of_block < 4 * kBlockParts || tiles_of_block * cut.tile_columns * kDepth * 2 > kWeightsMax)
    return cut;
  cut.parts *= kBlockParts;
  cut.block_parts = kBlockParts;
  return cut;
}

// As many blocks as run at once, or where there are more, few for the last multiprocessors to wait for; of equal cuts
// that with the fewest parts, for several cost kernels of many rows registers. A tile of 32 columns leaves half of a
// product unused, which costs nothing where memory binds.
constexpr LinearCut CutOf(const LinearShape& shape) {
  const auto share = [](const LinearCut& cut) {
    return static_cast<double>(cut.blocks) /
           static_cast<double>(Quotient(cut.blocks, kMultiprocessors) * kMultiprocessors);
  };
  LinearCut best = CutInto(shape, 128);
  if (shape.output == LinearOutput::kFloat32) return best;
  for (const int tile_columns : {192, 64, 32}) {
    const LinearCut cut = CutInto(shape, tile_columns);
    if (share(cut) > share(best) || (share(cut) == share(best) && cut.parts < best.parts)) best = cut;
  }
  return WithBlockParts(best, Quotient(shape.depth, kDepth));
}

// Whether a block of few rows has all its weights before x is there.
constexpr bool HasAllWeights(const LinearShape& shape) { return CutOf(shape).block_parts > 1; }

// Of a ring that has places for `places` tiles, as many as all turns give to the same part. A barrier tells two phases
// apart, so that warps may wait for a stage's next phase only after the phase before: they must have read that one
// themselves. Warps of another part pass such a wait before either tile is there.
constexpr int StagesOfParts(int places, int block_parts) { return places / block_parts * block_parts; }

// The same parts in tiles of 48 columns, where that gives more multiprocessors a block: 6,144 columns are 96 tiles of
// 64 and 128 of 48. Not for gate and up, which lie in blocks of 32 columns. Bits depend on the parts alone.
constexpr LinearCut SpreadOf(const LinearShape& shape, const LinearCut& cut) {
  constexpr int kColumns = 48;
  if (cut.tile_columns != kGroupColumns) return cut;
  LinearCut spread = cut;
  spread.tile_columns = kColumns;
  spread.blocks = Quotient(shape.columns, kColumns) * (cut.parts / cut.block_parts);
  return spread.blocks <= ClusterBlocksMax(cut.parts / cut.block_parts) ? spread : cut;
}

// The same parts with a block for each, where all have a multiprocessor: faster where blocks are small and start early.
// Bits depend on the parts alone.
constexpr LinearCut ApartOf(const LinearCut& cut) {
  const int64_t blocks = cut.blocks * cut.block_parts;
  return blocks <= kMultiprocessors ? LinearCut{cut.tile_columns, cut.parts, blocks} : cut;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_DEPTH_PARTS_H_
