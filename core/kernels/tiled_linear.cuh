// A linear layer of many rows on a Hopper GPU: persistent clusters of blocks, whose loader warp copies tiles of weights
// and of x for two warpgroups that multiply them, and whose writer warps store results while the next tile is summed.
#ifndef WARPSMITH_CORE_KERNELS_TILED_LINEAR_CUH_
#define WARPSMITH_CORE_KERNELS_TILED_LINEAR_CUH_

#include <algorithm>
#include <cstdint>

#include "core/kernels/depth_parts.h"
#include "core/kernels/hopper.cuh"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/tile_plan.h"
#include "core/kernels/tiled_output.cuh"
#include "core/kernels/warpgroup_products.cuh"

namespace warpsmith {

// Barriers of a block. Each phase of `full`: a stage's tiles came. Of `empty`: the warpgroups of all blocks that get
// copies from this block's loader have read the stage. Of `ready`: a buffer for results is free, or holds the residual.
// Of `staged`: a warpgroup has filled the buffer. Of `turns`: the warpgroups of the turn before have begun with their
// tile's last stage, so that each stage's phase is that of this turn's tile.
template <typename T>
struct TiledBarriers {
  uint64_t full[T::kStages];
  uint64_t empty[T::kStages];
  uint64_t ready[T::kGroups][std::max(T::kBuffers, 1)];
  uint64_t staged[T::kGroups][std::max(T::kBuffers, 1)];
  uint64_t turns[T::kTurns];
};

// Where a block stands in its cluster: rank = row + column * cluster.rows.
struct BlockPlace {
  int row;
  int column;
};

struct TiledProblem {
  TileOrder order;
  TileCluster cluster;
  int num_tiles;  // of the depth
  int num_parts;
  TiledOutput output;
};

// The block's tiles by turns, in the order in which they are loaded.
class TileWalk {
 public:
  // Every tile, or of each `turns` the `turn`th.
  __device__ TileWalk(const TiledProblem& problem, BlockPlace block, int turn = 0, int turns = 1)
      : problem_(problem),
        block_(block),
        step_(static_cast<int>(gridDim.x) / problem.cluster.size() * turns),
        index_(static_cast<int>(blockIdx.x) / problem.cluster.size() + step_ / turns * turn) {}

  __device__ bool HasTile() const { return index_ < problem_.order.size(); }
  __device__ void Next() { index_ += step_; }
  // In tiles.
  __device__ TilePlace Tile() const {
    const TilePlace place = problem_.order.PlaceOf(index_);
    return {place.row * problem_.cluster.rows + block_.row,
            place.column * problem_.cluster.columns + block_.column};
  }

 private:
  const TiledProblem& problem_;
  const BlockPlace block_;
  const int step_;
  int index_;
};

// One thread's copies of all tiles of the block. Of what blocks of a cluster share each loads a slice for all of them.
template <typename T>
class TileLoader {
 public:
  __device__ TileLoader(const CUtensorMap* weights, const CUtensorMap* x, const TiledProblem& problem,
                        BlockPlace block, unsigned char* stages, TiledBarriers<T>& barriers)
      : weights_(weights),
        x_(x),
        problem_(problem),
        block_(block),
        stages_(stages),
        barriers_(barriers),
        weight_rows_(T::kColumns / problem.cluster.rows),
        x_rows_(T::kRows / problem.cluster.columns),
        weight_blocks_(((1u << problem.cluster.rows) - 1) << block.column * problem.cluster.rows) {
    for (int i = 0; i < problem.cluster.columns; ++i)
      x_blocks_ |= 1u << (block.row + i * problem.cluster.rows);
  }

  // The first weights come while the former kernel still works on x.
  __device__ void LoadAll() {
    TileWalk walk(problem_, block_);
    const int ahead = walk.HasTile() ? min(problem_.num_tiles, T::kStages) : 0;
    for (int i = 0; i < ahead; ++i) {
      ArriveExpecting(&barriers_.full[i], T::kStageBytes);
      LoadWeights(walk.Tile(), i, i);
    }
    WaitForFormer();
    for (int i = 0; i < ahead; ++i) {
      LoadX(walk.Tile(), i, i);
      place_.Advance();
    }
    for (int first = ahead; walk.HasTile(); walk.Next(), first = 0) {
      const TilePlace tile = walk.Tile();
      for (int i = first; i < problem_.num_tiles; ++i) {
        Wait(&barriers_.empty[place_.stage], place_.parity ^ 1);
        ArriveExpecting(&barriers_.full[place_.stage], T::kStageBytes);
        LoadWeights(tile, i, place_.stage);
        LoadX(tile, i, place_.stage);
        place_.Advance();
      }
    }
  }

 private:
  __device__ void LoadWeights(TilePlace tile, int depth_tile, int stage) const {
    const int row = block_.row * weight_rows_;
    unsigned char* const to = stages_ + stage * T::kStageBytes + row * (kDepth * 2);
    uint64_t* const full = &barriers_.full[stage];
    const int depth = depth_tile * kDepth, column = tile.column * T::kColumns + row;
    if constexpr (T::kOutput == OutputKind::kSwiGlu) {
      constexpr int kPair = static_cast<int>(2 * kSwiGluBlock);
      if (problem_.cluster.rows == 1) {
        CopyBlocks(to, weights_, depth, column / kPair, full);
      } else {
        CopyBlocksToBlocks(to, weights_, depth, column / kPair, full, weight_blocks_);
      }
    } else if (problem_.cluster.rows == 1) {
      CopyTile(to, weights_, depth, column, full, CachePolicy::kEvictNormal);
    } else {
      CopyTileToBlocks(to, weights_, depth, column, full, weight_blocks_);
    }
  }

  __device__ void LoadX(TilePlace tile, int depth_tile, int stage) const {
    const int row = block_.column * x_rows_;
    unsigned char* const to = stages_ + stage * T::kStageBytes + T::kWeightBytes + row * (kDepth * 2);
    const int depth = depth_tile * kDepth;
    if (problem_.cluster.columns == 1) {
      CopyTile(to, x_, depth, tile.row * T::kRows + row, &barriers_.full[stage], CachePolicy::kEvictNormal);
    } else {
      CopyTileToBlocks(to, x_, depth, tile.row * T::kRows + row, &barriers_.full[stage], x_blocks_);
    }
  }

  const CUtensorMap* const weights_;
  const CUtensorMap* const x_;
  const TiledProblem& problem_;
  const BlockPlace block_;
  unsigned char* const stages_;
  TiledBarriers<T>& barriers_;
  const int weight_rows_, x_rows_;  // of a slice
  const uint32_t weight_blocks_;    // that get this block's slices
  uint32_t x_blocks_ = 0;
  PipelinePlace<T::kStages> place_;
};

// The sums of a warpgroup, tile after tile.
template <typename T>
class TileSums {
 public:
  __device__ TileSums(const TiledProblem& problem, BlockPlace block, int group, unsigned char* stages,
                      TiledBarriers<T>& barriers)
      : problem_(problem), group_(group), stages_(stages), barriers_(barriers) {
    // Lane i of each warp tells the i-th block whose loader fills this block's stages: those of its row, then the
    // others of its column.
    const TileCluster cluster = problem.cluster;
    const int lane = threadIdx.x % kLanes, other = lane - cluster.columns;
    const int row = lane < cluster.columns ? block.row : other + (other >= block.row);
    const int column = lane < cluster.columns ? lane : block.column;
    tells_ = lane < cluster.columns + cluster.rows - 1;
    empty_ = AddressInBlock(barriers.empty, tells_ ? row + column * cluster.rows : 0);
    place_.Skip(group / T::kTileGroups * problem.num_tiles);
  }

  // Parts are added in their order.
  __device__ void Sum(float (&sums)[T::kBlocks][T::kSums]) {
    if constexpr (T::kTurns > 1) {
      // The first turn of all does not wait.
      const int turn = group_ / T::kTileGroups;
      Wait(&barriers_.turns[turn], turn == 0 ? turn_parity_ ^ 1 : turn_parity_);
      turn_parity_ ^= 1;
    }
    if constexpr (!T::kSeveralParts) {
      SumPart(0, sums);
    } else {
      float of_part[T::kBlocks][T::kSums];
      for (int part = 0; part < problem_.num_parts; ++part) {
        SumPart(part, of_part);
#pragma unroll
        for (int i = 0; i < T::kBlocks * T::kSums; ++i) {
          const int block = i / T::kSums, j = i % T::kSums;
          sums[block][j] = part == 0 ? of_part[block][j] : sums[block][j] + of_part[block][j];
        }
      }
    }
    if constexpr (T::kTurns > 1) place_.Skip((T::kTurns - 1) * problem_.num_tiles);
  }

 private:
  __device__ void SumPart(int index, float (&sums)[T::kBlocks][T::kSums]) {
    constexpr int kOfGroup = T::kBlocks * kProductRows * kDepth * 2,
                  kOfBlock = kProductRows * kDepth * 2 >> 4;
    const DepthPart part = TilesOfPart(index, problem_.num_parts, problem_.num_tiles);
    const int num_tiles = part.end - part.first;
    int former = 0;
    if constexpr (T::kBlocks > 1) {
      // Otherwise the compiler gives a later block's sums their registers after the first product, and lets each
      // product wait for the one before.
#pragma unroll
      for (int i = 0; i < T::kBlocks * T::kSums; ++i)
        asm volatile("mov.f32 %0, 0f00000000;" : "=f"(sums[i / T::kSums][i % T::kSums]));
    }
    for (int i = 0; i < num_tiles; ++i) {
      Wait(&barriers_.full[place_.stage], place_.parity);
      unsigned char* const weights = stages_ + place_.stage * T::kStageBytes;
      unsigned char* const x = weights + T::kWeightBytes;
      const uint64_t a = TileDescriptor((T::kXFirst ? x : weights) + group_ % T::kTileGroups * kOfGroup);
      const uint64_t b = TileDescriptor(T::kXFirst ? weights : x);
      BeginProducts();
#pragma unroll
      for (int step = 0; step < kDepth / kProductDepth; ++step) {
#pragma unroll
        for (int block = 0; block < T::kBlocks; ++block) {
          Product<typename T::Element>(sums[block], a + block * kOfBlock + 2 * step, b + 2 * step,
                                       i > 0 || step > 0);
        }
      }
      CommitProducts();
      // The tile before has been read.
      WaitForProducts<1>();
      if (i > 0) Release(former);
      former = place_.stage;
      place_.Advance();
    }
    if constexpr (T::kTurns > 1) {
      if (threadIdx.x % kLanes == 0) Arrive(&barriers_.turns[(group_ / T::kTileGroups + 1) % T::kTurns]);
    }
#pragma unroll
    for (int block = 0; block < T::kBlocks; ++block) FinishProducts(sums[block]);
    Release(former);
  }

  __device__ void Release(int stage) const {
    if (tells_) ArriveInBlock(empty_ + stage * static_cast<int>(sizeof(uint64_t)));
  }

  const TiledProblem& problem_;
  const int group_;
  unsigned char* const stages_;
  TiledBarriers<T>& barriers_;
  bool tells_;
  uint32_t empty_;
  PipelinePlace<T::kStages> place_;
  uint32_t turn_parity_ = 0;
};

template <typename T>
__device__ void InitBarriers(const TileCluster& cluster, TiledBarriers<T>& barriers) {
  constexpr int kWarps = T::kTileGroups * kWarpgroup / kLanes;
  for (int i = 0; i < T::kStages; ++i) {
    InitBarrier(&barriers.full[i], 1);
    InitBarrier(&barriers.empty[i], kWarps * (cluster.columns + cluster.rows - 1));
  }
  for (int i = 0; i < T::kTurns; ++i) InitBarrier(&barriers.turns[i], kWarps);
  for (int group = 0; group < T::kGroups; ++group) {
    for (int i = 0; i < T::kBuffers; ++i) {
      InitBarrier(&barriers.ready[group][i], 1);
      InitBarrier(&barriers.staged[group][i], kWarpgroup);
    }
  }
  FenceBarriers();
}

template <typename T>
__global__ void __launch_bounds__(T::kThreads, 1)
    TiledLinearKernel(const __grid_constant__ CUtensorMap weights, const __grid_constant__ CUtensorMap x,
                      const __grid_constant__ CUtensorMap residual, const __grid_constant__ CUtensorMap y,
                      const __grid_constant__ TiledProblem problem) {
  extern __shared__ unsigned char memory[];
  __shared__ TiledBarriers<T> barriers;
  unsigned char* const stages =
      memory + (kTileAlignment - SharedAddress(memory) % kTileAlignment) % kTileAlignment;
  unsigned char* const buffers = stages + T::kStages * T::kStageBytes;
  const int rank = static_cast<int>(ClusterRank());
  const BlockPlace block = {rank % problem.cluster.rows, rank / problem.cluster.rows};
  if (threadIdx.x == 0) {
    PrefetchMap(&weights);
    PrefetchMap(&x);
    InitBarriers(problem.cluster, barriers);
  }
  MeetCluster();  // others may tell this block's barriers

  const int group = WarpgroupIndex();
  if (group == T::kGroups) {
    if constexpr (T::kMovesRegisters) LowerRegisters<T::kCopierRegisters>();
    const int warp = WarpIndex() % (kWarpgroup / kLanes);
    if (warp == 0) {
      if (IsElected()) {
        TileLoader<T>(&weights, &x, problem, block, stages, barriers).LoadAll();
        LetNextStart();
      }
    } else if constexpr (T::kBuffers > 0) {
      if (warp <= T::kGroups && IsElected()) {
        TileWriter<T, TileWalk, TiledBarriers<T>>(
            warp - 1, &residual, &y, TileWalk(problem, block, (warp - 1) / T::kTileGroups, T::kTurns),
            problem.output.residual != nullptr, buffers, barriers)
            .WriteAll();
      }
    }
  } else {
    if constexpr (T::kMovesRegisters) RaiseRegisters<T::kSumRegisters>();
    WaitForFormer();
    TileSums<T> tile_sums(problem, block, group, stages, barriers);
    TileStager<T, TiledBarriers<T>> stager(group, problem.output, buffers, barriers);
    for (TileWalk walk(problem, block, group / T::kTileGroups, T::kTurns); walk.HasTile(); walk.Next()) {
      float sums[T::kBlocks][T::kSums];
      tile_sums.Sum(sums);
      stager.Stage(walk.Tile(), sums);
    }
  }
  __syncwarp();
  MeetCluster();  // others may still copy to this block or tell its barriers
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TILED_LINEAR_CUH_
