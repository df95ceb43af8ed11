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

inline constexpr int kTileRows[] = {48, 64, 96, 112, 128, 160, 176, 208, 256};
inline constexpr int kTileColumns[] = {64, 128, 192};

// The tiles that kernels are built for. Of several parts of the depth a warpgroup keeps two sets of sums, and only few
// of these fit its registers; tiles of many columns and rows leave too little memory for results.
constexpr bool IsBuilt(int tile_rows, int tile_columns, bool several_parts) {
  if (several_parts) return tile_columns == 128 && (tile_rows == 64 || tile_rows == 128 || tile_rows == 176);
  return tile_columns == 128 || tile_rows <= 128;
}

// What a tile costs: nanoseconds for each step of 64 in depth while all multiprocessors work, fitted to measurements of
// products of 4,096 to 24,576 columns and 96 to 2,048 rows on an H100 (within a tenth). Copies bind small tiles, for
// which sharing x is worth less than sharing weights; the tensor cores bind large ones.
constexpr double StepCost(const TilePlan& plan) {
  constexpr double kStepMin = 225;
  const double rows = plan.tile_rows, columns = plan.tile_columns;
  const double cost = std::max(kStepMin, 0.93 * columns + (0.6 + columns / 80) * rows);
  const bool is_large = plan.tile_rows >= 160, shares_x = plan.cluster.columns > 1;
  const double of_columns = plan.tile_columns == 192 ? 1.02 : 1.0;
  const double of_cluster = is_large ? (shares_x ? 1.0 : 1.02) : (shares_x ? 1.2 : 1.0);
  return cost * of_columns * of_cluster;
}

// The plan whose clusters end first by StepCost, with what a tile costs besides its steps.
constexpr TilePlan PlanOf(const LinearShape& shape, int64_t rows, int multiprocessors) {
  constexpr double kTileCost = 1000;
  const auto steps = static_cast<double>(Quotient(shape.depth, kDepth));
  TilePlan best;
  double best_cost = 0;
  for (const TileCluster cluster : {TileCluster{1, 2}, TileCluster{2, 1}}) {
    for (const int tile_columns : kTileColumns) {
      for (const int tile_rows : kTileRows) {
        if (!IsBuilt(tile_rows, tile_columns, CutOf(shape).parts > 1)) continue;
        const TilePlan plan = {tile_rows, tile_columns, cluster};
        const int64_t turns =
            Quotient(OrderOf(plan, rows, shape.columns).size(), multiprocessors / cluster.size());
        const double cost = static_cast<double>(turns) * (steps * StepCost(plan) + kTileCost);
        if (best_cost == 0 || cost < best_cost) best = plan, best_cost = cost;
      }
    }
  }
  return best;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TILE_PLAN_H_
