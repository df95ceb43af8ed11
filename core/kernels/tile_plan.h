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

// Which operand has the 64 rows of a product (m of wgmma); the other has up to 256 (n). Sums have the same bits.
enum class FirstOperand { kWeights, kX };

// What a launch chooses by the number of rows. No choice changes bits.
struct TilePlan {
  int tile_rows = 256;
  int tile_columns = 128;
  TileCluster cluster;
  FirstOperand first = FirstOperand::kWeights;
  int turns = 1;  // 2: each of two warpgroups has tiles of its own, and stores one while the other sums
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

// Where the sums of a tile go: to y as it is, through SwiGLU, or as float32.
enum class OutputKind { kStored, kSwiGlu, kFloat32 };

inline constexpr int kTileRows[] = {48, 64, 96, 104, 112, 128, 160, 176, 208, 256};
inline constexpr int kTileColumns[] = {64, 128, 192};
// Besides tiles of these rows and columns, which all warpgroups of a block share, weights first.
inline constexpr TilePlan kOtherTiles[] = {{128, 96, {}, FirstOperand::kX, 1},
                                           {128, 128, {}, FirstOperand::kWeights, 2},
                                           {160, 128, {}, FirstOperand::kWeights, 2},
                                           {128, 192, {}, FirstOperand::kX, 2}};

// The tiles that kernels are built for. Of several parts of the depth a warpgroup keeps two sets of sums, and only few
// of these fit its registers; tiles of many columns and rows leave too little memory for results. A block copies whole
// atoms of eight rows for others.
constexpr bool IsBuilt(const TilePlan& plan, bool several_parts, OutputKind kind) {
  const int rows = plan.tile_rows, columns = plan.tile_columns;
  if (rows / plan.cluster.columns % 8 != 0) return false;
  if (plan.first == FirstOperand::kWeights && plan.turns == 1) {
    if (several_parts) return columns == 128 && (rows == 64 || rows == 128 || rows == 176);
    return columns == 128 || rows <= 128;
  }
  return !several_parts && kind != OutputKind::kFloat32 && (columns != 96 || kind == OutputKind::kStored);
}

// What a tile costs: nanoseconds for each step of 64 in depth while all multiprocessors work. The tensor cores take
// 64 x 64 products in 128 cycles, and a multiprocessor takes 64 bytes in a cycle; at these rates the device runs at
// some 1.4 and 1.75 GHz. Sharing x is worth less than sharing weights where tiles are small. `overlaps`: results are
// stored while others are summed.
constexpr double StepCost(const TilePlan& plan, bool overlaps) {
  constexpr double kStepMin = 110;
  const double rows = plan.tile_rows, columns = plan.tile_columns;
  const double tensor_cores = rows * columns / 32 * 0.73, copies = (rows + columns) * 2 * 0.57;
  const bool is_large = plan.tile_rows >= 160, shares_x = plan.cluster.columns > 1;
  const double of_cluster = is_large ? (shares_x ? 1.0 : 1.02) : (shares_x ? 1.2 : 1.0);
  const double of_columns = plan.tile_columns == 192 && !overlaps ? 1.05 : 1.0;
  return (std::max({kStepMin, tensor_cores, copies}) + (overlaps ? 15 : 24)) * of_cluster * of_columns;
}

// A measure of the time that a product takes, to the fourth power: of its tiles, with what each costs besides its
// steps, and of its weights, which come from memory meanwhile. Fitted to products of 4,096 to 24,576 columns and 96 to
// 4,096 rows on an H100, the good ones of some 650 plans within 7 %.
constexpr double CostOf(const TilePlan& plan, const LinearShape& shape, int64_t rows, int multiprocessors) {
  constexpr double kBytesOfNanosecond = 2700;
  const auto steps = static_cast<double>(Quotient(shape.depth, kDepth));
  const int64_t turns =
      Quotient(OrderOf(plan, rows, shape.columns).size(), multiprocessors / plan.cluster.size());
  const bool overlaps = plan.turns > 1 && turns > 1;
  const double tiles =
      static_cast<double>(turns) * (steps * StepCost(plan, overlaps) + (overlaps ? 500 : 1100));
  const double weights = static_cast<double>(shape.columns * shape.depth * 2) / kBytesOfNanosecond;
  return tiles * tiles * tiles * tiles + weights * weights * weights * weights;
}

// Whether a product has tiles; others have kernels that stream the weights (streamed_linear_cuda.h). Of up to 64 rows
// it has where it is wide, for its blocks gain more by sharing x in clusters than by more stages.
constexpr bool HasTiles(const LinearShape& shape, int64_t rows) {
  constexpr int64_t kStreamedMax = 64;
  if (rows > kStreamedMax) return true;
  const LinearCut cut = CutOf(shape);
  return rows > kStreamedMax / 2 && cut.tile_columns == 192 && cut.parts == 1;
}

// The plan that costs least.
constexpr TilePlan PlanOf(const LinearShape& shape, int64_t rows, OutputKind kind, int multiprocessors) {
  const bool several_parts = CutOf(shape).parts > 1;
  TilePlan best;
  double best_cost = 0;
  const auto try_plan = [&](const TilePlan& plan) {
    if (!IsBuilt(plan, several_parts, kind)) return;
    const double cost = CostOf(plan, shape, rows, multiprocessors);
    if (best_cost == 0 || cost < best_cost) best = plan, best_cost = cost;
  };
  for (const TileCluster cluster : {TileCluster{1, 2}, TileCluster{2, 1}}) {
    for (const int tile_columns : kTileColumns) {
      for (const int tile_rows : kTileRows) try_plan({tile_rows, tile_columns, cluster});
    }
    for (TilePlan plan : kOtherTiles) {
      plan.cluster = cluster;
      try_plan(plan);
    }
  }
  return best;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TILE_PLAN_H_
