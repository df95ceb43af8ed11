#include "core/kernels/tile_plan.h"

#include <set>
#include <utility>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("an order of tiles has every place once, and a band before the next") {
  for (const int rows : {1, 2, 7, 8, 9, 33}) {
    for (const int columns : {1, 3, 48}) {
      for (const int band : {1, 2, 8, 40}) {
        const TileOrder order = {rows, columns, band};
        std::set<std::pair<int, int>> places;
        int band_before = 0;
        for (int i = 0; i < order.size(); ++i) {
          const TilePlace place = order.PlaceOf(i);
          INFO(rows << " x " << columns << " in bands of " << band << ", index " << i);
          REQUIRE((place.row >= 0 && place.row < rows && place.column >= 0 && place.column < columns));
          CHECK(place.row / band >= band_before);
          band_before = place.row / band;
          CHECK(places.emplace(place.row, place.column).second);
        }
      }
    }
  }
}

TEST_CASE("the tiles of an order cover a product") {
  for (const int64_t rows : {65, 256, 400, 4096, 100000}) {
    for (const int64_t columns : {8, 128, 136, 6144, 151936}) {
      for (const TileCluster cluster : {TileCluster{1, 1}, {2, 1}, {1, 2}, {4, 2}}) {
        const TilePlan plan = {112, 128, cluster};
        const TileOrder order = OrderOf(plan, rows, columns);
        CHECK(int64_t{order.rows} * cluster.rows * plan.tile_rows >= rows);
        CHECK(int64_t{order.rows - 1} * cluster.rows * plan.tile_rows < rows);
        CHECK(int64_t{order.columns} * cluster.columns * plan.tile_columns >= columns);
        CHECK((order.band >= 1 && order.band <= order.rows));
      }
    }
  }
}

TEST_CASE("parts of the depth follow each other and have all tiles") {
  for (const int num_tiles : {1, 4, 17, 64, 192}) {
    for (const int num_parts : {1, 2, 4, 8}) {
      int end = 0;
      for (int i = 0; i < num_parts; ++i) {
        const DepthPart part = TilesOfPart(i, num_parts, num_tiles);
        CHECK(part.first == end);
        end = part.end;
      }
      CHECK(end == num_tiles);
    }
  }
}

TEST_CASE("a layer is cut so that its blocks fill the device, and into few parts") {
  const auto cut_of = [](int64_t columns, int64_t depth) { return CutOf({columns, depth}); };
  CHECK(cut_of(4096, 4096).parts == 1);
  CHECK(cut_of(4096, 12288).parts == 1);
  CHECK(cut_of(6144, 4096).parts == 1);
  CHECK(cut_of(24576, 4096).parts == 1);
  CHECK(cut_of(4096, 4096).blocks == 128);
  CHECK(cut_of(64, 72).parts == 1);  // too little depth
  CHECK(cut_of(1024, 4096).parts > 1);
}

TEST_CASE("parts that blocks share get blocks of their own where all have a multiprocessor") {
  const LinearCut wide = CutOf({4096, 1024}), narrow = CutOf({1024, 2048});
  CHECK((wide.block_parts == 2 && wide.parts == 2 && wide.blocks == 128));
  CHECK((narrow.block_parts == 2 && narrow.parts == 4 && narrow.blocks == 64));
  CHECK((ApartOf(wide).block_parts == 2 && ApartOf(wide).blocks == 128));
  CHECK((ApartOf(narrow).block_parts == 1 && ApartOf(narrow).parts == 4 && ApartOf(narrow).blocks == 128));
  CHECK(CutOf({4096, 4096}).block_parts == 1);  // too much for a block to have at once
}

TEST_CASE("a stage of a ring belongs to one part in every turn") {
  for (const int block_parts : {1, 2}) {
    for (int places = 2 * block_parts; places <= 40; ++places) {
      const int stages = StagesOfParts(places, block_parts);
      CHECK((stages <= places && stages > places - block_parts));
      for (int tile = 0; tile < 3 * stages; ++tile) {
        CHECK(tile % stages % block_parts == tile % block_parts);
      }
    }
  }
}

TEST_CASE("tiles of 48 columns spread a layer over more multiprocessors, with the same parts") {
  const auto spread_of = [](int64_t columns, int64_t depth) {
    const LinearShape shape = {columns, depth};
    return SpreadOf(shape, CutOf(shape));
  };
  CHECK((spread_of(6144, 4096).tile_columns == 48 && spread_of(6144, 4096).blocks == 128));
  CHECK((spread_of(6144, 1024).block_parts == 2 && spread_of(6144, 1024).blocks == 128));
  CHECK(spread_of(8448, 4096).tile_columns == 64);  // 132 blocks already
  CHECK(spread_of(24576, 4096).tile_columns == 192);
  for (int64_t columns = 8; columns <= 30000; columns += 8) {
    for (const int64_t depth : {64, 1024, 4096, 12288}) {
      const LinearShape shape = {columns, depth};
      const LinearCut cut = CutOf(shape), spread = SpreadOf(shape, cut);
      CHECK((spread.parts == cut.parts && spread.block_parts == cut.block_parts &&
             spread.blocks >= cut.blocks));
    }
  }
}

TEST_CASE("up to 96 rows have tiles of 48 for each block of a cluster, which share weights") {
  for (const int64_t columns : {4096, 6144}) {
    const TilePlan plan = PlanOf({columns, 4096}, 96, OutputKind::kStored, 132);
    CHECK((plan.tile_rows == 48 && plan.cluster.rows == 2));
  }
  CHECK(PlanOf({4096, 12288}, 128, OutputKind::kStored, 132).tile_rows == 64);
}

TEST_CASE("a kernel is built for every plan") {
  for (const int64_t columns : {8, 1024, 4096, 6144, 24576, 151936}) {
    for (const int64_t rows : {33, 65, 128, 256, 400, 1000, 2048, 4096}) {
      for (const OutputKind kind : {OutputKind::kStored, OutputKind::kSwiGlu, OutputKind::kFloat32}) {
        const LinearShape shape = {columns, 4096};
        CHECK(IsBuilt(PlanOf(shape, rows, kind, 132), CutOf(shape).parts > 1, kind));
      }
    }
  }
}

TEST_CASE("wide products have tiles from 33 rows on, others from 65") {
  CHECK((HasTiles({24576, 4096}, 33) && !HasTiles({24576, 4096}, 32)));
  CHECK((HasTiles({4096, 4096}, 65) && !HasTiles({4096, 4096}, 64)));
  CHECK(!HasTiles({10240, 5120}, 64));  // two parts, which no tile of 192 columns has
  const TilePlan plan = PlanOf({24576, 4096}, 64, OutputKind::kSwiGlu, 132);
  CHECK((plan.tile_rows == 64 && plan.tile_columns == 192 && plan.cluster.columns == 2));
}

TEST_CASE("a plan leaves few multiprocessors without a tile, and rows of tiles few without a row") {
  const TilePlan two_turns = PlanOf({4096, 4096}, 2048, OutputKind::kStored, 132);
  CHECK((two_turns.tile_rows == 256 && two_turns.tile_columns == 128));
  for (const int64_t columns : {4096, 6144}) {  // four rows of 104 by 32 columns of 128 or 192
    CHECK(PlanOf({columns, 4096}, 400, OutputKind::kStored, 132).tile_rows == 104);
  }
  for (const int64_t rows : {1919, 1920, 2048, 2080, 4096}) {  // chunks of prompts, with rows that decode
    const TilePlan wide = PlanOf({24576, 4096}, rows, OutputKind::kSwiGlu, 132);
    CHECK((wide.tile_rows == 160 && wide.turns == 2));
  }
}

}  // namespace
}  // namespace warpsmith
