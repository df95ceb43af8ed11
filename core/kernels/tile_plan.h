// Which output tiles the blocks of a linear layer of many rows work out, and in which order.
#ifndef WARPSMITH_CORE_KERNELS_TILE_PLAN_H_
#define WARPSMITH_CORE_KERNELS_TILE_PLAN_H_

#include <algorithm>
#include <cstdint>

#include "core/kernels/depth_parts.h"

namespace warpsmith {

// Blocks of a cluster work at tiles side by side: `columns` tiles share each tile of x, `rows` tiles share each tile of
// the weights, which the copy engine then reads once for all of them.
struct TileCluster {
  int columns = 2;
  int rows = 1;
  constexpr int size() const { return columns * rows; }
};

// What a launch chooses by the number of rows. No choice changes bits.
struct TilePlan {
  int tile_rows = 256;
  int tile_columns = 128;
  TileCluster cluster;
};

// The tiles of a cluster, in units of clusters.
struct TilePlace {
  int row;
  int column;
};

// The order in which clusters take their places: `band` rows of places from the first column to the last, then the next
// band. Within a band rows come first, so that the clusters that run at once read few different tiles of the weights
// and all rows of the band, and weights come from memory once for each band.
struct TileOrder {
  int rows;     // of places
  int columns;  // of places
  int band;

  constexpr int size() const { return rows * columns; }
  constexpr TilePlace PlaceOf(int index) const {
    const int first_row = index / (band * columns) * band;
    const int rows_of_band = std::min(band, rows - first_row);
    const int rest = index - first_row * columns;
    return {first_row + rest % rows_of_band, rest / rows_of_band};
  }
};

constexpr TileOrder OrderOf(const TilePlan& plan, int64_t rows, int64_t columns) {
  constexpr int64_t kBandRows =
      2048;  // of x, so that a band of x and some weights stay in the device's cache
  const int64_t place_rows = Quotient(rows, plan.tile_rows * plan.cluster.rows);
  const int64_t bands = Quotient(rows, kBandRows);
  return {static_cast<int>(place_rows),
          static_cast<int>(Quotient(columns, plan.tile_columns * plan.cluster.columns)),
          static_cast<int>(Quotient(place_rows, bands))};
}

inline constexpr int kTileRows[] = {64, 96, 112, 128, 160, 176, 208, 256};
inline constexpr int kTileColumns[] = {64, 128, 192};

// The tiles that kernels are built for. Of several parts of the depth a warpgroup keeps two sets of sums, and only few of
// these fit its registers; large tiles leave too little memory for results.
constexpr bool IsBuilt(int tile_rows, int tile_columns, bool several_parts) {
  if (several_parts) return tile_columns == 128 && (tile_rows == 64 || tile_rows == 128 || tile_rows == 176);
  if (tile_columns == 64) return tile_rows <= 128 || tile_rows == 208;
  return tile_columns == 128 || tile_rows <= 128;
}

// Cycles of a multiprocessor for a step of 64 in depth of a tile while all work: of the tensor cores, of shared memory,
// which copies fill and products read, at 128 bytes a cycle, and of its share of the cache's bandwidth.
constexpr double CyclesOfTile(const TilePlan& plan) {
  constexpr double kCacheBytes = 36;  // a cycle
  constexpr double kRowBytes = kDepth * 2;
  const double rows = plan.tile_rows, groups = plan.tile_columns / 64;
  const double products = 2 * groups * rows;
  const double memory = groups * (64 + rows) + groups * 64 + rows;
  const double cache =
      (groups * 64 / plan.cluster.rows + rows / plan.cluster.columns) * kRowBytes / kCacheBytes;
  return std::max({products, memory, cache});
}

// The plan whose clusters end first by CyclesOfTile.
constexpr TilePlan PlanOf(const LinearShape& shape, int64_t rows, int multiprocessors) {
  TilePlan best;
  double best_cycles = 0;
  for (const TileCluster cluster : {TileCluster{1, 2}, TileCluster{2, 1}}) {
    for (const int tile_columns : kTileColumns) {
      for (const int tile_rows : kTileRows) {
        if (!IsBuilt(tile_rows, tile_columns, CutOf(shape).parts > 1)) continue;
        const TilePlan plan = {tile_rows, tile_columns, cluster};
        const int64_t turns =
            Quotient(OrderOf(plan, rows, shape.columns).size(), multiprocessors / cluster.size());
        const double cycles = static_cast<double>(turns) * CyclesOfTile(plan);
        if (best_cycles == 0 || cycles < best_cycles) best = plan, best_cycles = cycles;
      }
    }
  }
  return best;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TILE_PLAN_H_
