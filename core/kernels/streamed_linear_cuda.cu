#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "core/kernels/depth_parts.h"
#include "core/kernels/hopper.cuh"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/multiprocessors.h"
#include "core/kernels/streamed_depth.cuh"
#include "core/kernels/streamed_linear_cuda.h"
#include "core/kernels/streamed_output.cuh"
#include "core/kernels/tensor_map_cuda.h"
#include "core/kernels/tile_plan.h"
#include "core/kernels/tiled_linear_cuda.h"
#include "core/kernels/warpgroup_products.cuh"

namespace warpsmith {
namespace {

struct Barriers {
  uint64_t full[kStagesMax];
  uint64_t empty[kStagesMax];
  uint64_t x;     // all tiles of x came
  uint64_t sent;  // what other blocks of the cluster send
};

// Where a block that has places for all its tiles has those of x of a part, as many as of any part.
template <typename T>
__device__ unsigned char* XOfPart(int part, const BlockPlan& plan, unsigned char* stages) {
  return stages + plan.num_stages * T::kWeightBytes + part * (plan.num_stages / T::kBlockParts) * T::kXBytes;
}

// All tiles of a block, by one thread. The first weights come while the former kernel still works on x. All weights are
// read once, so they need not stay in the cache.
template <typename T>
__device__ void CopyByTurns(const CUtensorMap* weights, const CUtensorMap* x, int column, int row,
                            const BlockDepth<T::kBlockParts>& depth, const BlockPlan& plan,
                            unsigned char* stages, Barriers& barriers) {
  const auto copy_weights = [&](int tile, int stage) {
    ArriveExpecting(&barriers.full[stage], T::kStageBytes);
    CopyTile(stages + stage * T::kStageBytes, weights, tile * kDepth, column, &barriers.full[stage],
             CachePolicy::kEvictFirst);
  };
  const auto copy_x = [&](int tile, int stage) {
    CopyTile(stages + stage * T::kStageBytes + T::kWeightBytes, x, tile * kDepth, row, &barriers.full[stage],
             CachePolicy::kEvictNormal);
  };
  const int num_places = depth.num_places(), ahead = min(num_places, plan.num_stages);
  for (int i = 0; i < ahead; ++i) {
    if (const int tile = depth.TileOfPlace(i); tile >= 0) copy_weights(tile, i);
  }
  if (plan.starts_next_early) LetNextStart();
  WaitForFormer();
  for (int i = 0; i < ahead; ++i) {
    if (const int tile = depth.TileOfPlace(i); tile >= 0) copy_x(tile, i);
  }
  RingPlace place = {0, 0};
  for (int i = ahead; i < num_places; ++i, place.Advance(1, plan.num_stages)) {
    const int tile = depth.TileOfPlace(i);
    if (tile < 0) continue;
    Wait(&barriers.empty[place.stage], place.parity);
    copy_weights(tile, place.stage);
    copy_x(tile, place.stage);
  }
  // The next kernel's weights may come once all of this one's are under way.
  if (!plan.starts_next_early) LetNextStart();
}

// Likewise of a block that has places for all its tiles. x comes behind the weights, in one copy for each part: copies
// of single tiles take turns.
template <typename T>
__device__ void CopyAllTiles(const CUtensorMap* weights, const CUtensorMap* x, int column, int row,
                             const BlockDepth<T::kBlockParts>& depth, const BlockPlan& plan,
                             unsigned char* stages, Barriers& barriers) {
  for (int i = 0; i < plan.num_stages; ++i) {
    const int tile = depth.TileOfPlace(i);
    if (tile < 0) continue;
    ArriveExpecting(&barriers.full[i], T::kWeightBytes);
    CopyTile(stages + i * T::kWeightBytes, weights, tile * kDepth, column, &barriers.full[i],
             CachePolicy::kEvictFirst);
  }
  LetNextStart();
  ArriveExpecting(&barriers.x, plan.num_stages * T::kXBytes);
  WaitForFormer();
#pragma unroll
  for (int part = 0; part < T::kBlockParts; ++part) {
    CopyTiles(XOfPart<T>(part, plan, stages), x, row, depth.parts[part].first, &barriers.x);
  }
}

// The sums of a warpgroup over the tiles of part `part` of such a block.
template <typename T>
__device__ void SumAllTiles(int part, int group, int num_tiles, const BlockPlan& plan, unsigned char* stages,
                            Barriers& barriers, float (&sums)[T::kSums]) {
  unsigned char* const x = XOfPart<T>(part, plan, stages);
  Wait(&barriers.x, 0);
  for (int tile = 0; tile < num_tiles; ++tile) {
    const int stage = tile * T::kBlockParts + part;
    Wait(&barriers.full[stage], 0);
    const uint64_t a = TileDescriptor(stages + stage * T::kWeightBytes + group * kGroupColumns * kDepth * 2);
    const uint64_t b = TileDescriptor(x + tile * T::kXBytes);
    BeginProducts();
#pragma unroll
    for (int step = 0; step < kDepth / kProductDepth; ++step) {
      Product<typename T::Element>(sums, a + 2 * step, b + 2 * step, tile > 0 || step > 0);
    }
    CommitProducts();
  }
  FinishProducts(sums);
}

// The sums of a warpgroup over the tiles of part `part` of the block.
template <typename T>
__device__ void SumTiles(int part, int group, int num_tiles, int num_stages, unsigned char* stages,
                         Barriers& barriers, float (&sums)[T::kSums]) {
  RingPlace place = {part, 0};
  int former = 0;
  for (int tile = 0; tile < num_tiles; ++tile) {
    Wait(&barriers.full[place.stage], place.parity);
    unsigned char* const weights = stages + place.stage * T::kStageBytes;
    const uint64_t a = TileDescriptor(weights + group * kGroupColumns * kDepth * 2);
    const uint64_t b = TileDescriptor(weights + T::kWeightBytes);
    BeginProducts();
#pragma unroll
    for (int step = 0; step < kDepth / kProductDepth; ++step) {
      Product<typename T::Element>(sums, a + 2 * step, b + 2 * step, tile > 0 || step > 0);
    }
    CommitProducts();
    // The tile before has been read.
    WaitForProducts<1>();
    if (tile > 0 && threadIdx.x % kLanes == 0) Arrive(&barriers.empty[former]);
    former = place.stage;
    place.Advance(T::kBlockParts, num_stages);
  }
  FinishProducts(sums);
}

template <typename T>
__device__ void InitBarriers(int num_stages, Barriers& barriers) {
  for (int stage = 0; stage < num_stages; ++stage) {
    InitBarrier(&barriers.full[stage], 1);
    InitBarrier(&barriers.empty[stage], T::kColumnGroups * kWarpgroup / kLanes);
  }
  InitBarrier(&barriers.x, 1);
  InitBarrier(&barriers.sent, 1);
  FenceBarriers();
}

// Block {i, j, k}: rows from i kRows, columns from j T::kColumns, the k-th parts of the depth. The blocks of an output
// are a cluster. kWhole: a block has places for all its tiles, and `x` is of EncodeTilesMap.
template <typename T, typename Stored, bool kWhole>
__global__ void __launch_bounds__(T::kThreads)
    StreamedLinearKernel(const __grid_constant__ CUtensorMap weights, const __grid_constant__ CUtensorMap x,
                         const __grid_constant__ StreamedOutput output, const BlockPlan plan) {
  extern __shared__ unsigned char memory[];
  __shared__ Barriers barriers;
  unsigned char* const stages =
      memory + (kTileAlignment - SharedAddress(memory) % kTileAlignment) % kTileAlignment;
  const int row = blockIdx.x * T::kBlockRows, column = blockIdx.y * T::kColumns, num_blocks = gridDim.z;
  const BlockDepth<T::kBlockParts> depth(blockIdx.z, num_blocks, plan.num_tiles);
  const ClusterPlace cluster = {num_blocks, num_blocks == 1 ? 0 : static_cast<int>(ClusterRank())};
  const int num_rows = min(T::kBlockRows, output.rows - row);
  if (threadIdx.x == 0) {
    PrefetchMap(&weights);
    PrefetchMap(&x);
    InitBarriers<T>(plan.num_stages, barriers);
    if (kWhole) ArriveExpecting(&barriers.sent, BytesSent<T>(cluster, num_rows));
  }
  if (kWhole && num_blocks > 1) {
    MeetCluster();  // others may send
  } else {
    __syncthreads();
  }

  const int group = WarpgroupIndex(), part = group / T::kColumnGroups, of_part = group % T::kColumnGroups;
  OutputWriter<T, Stored> writer(output, cluster, row, column);
  float* const block_sums = reinterpret_cast<float*>(stages);
  float sums[T::kSums];
  if (group == T::kGroups) {
    if (IsElected()) {
      if constexpr (kWhole) {
        CopyAllTiles<T>(&weights, &x, column, row, depth, plan, stages, barriers);
      } else {
        CopyByTurns<T>(&weights, &x, column, row, depth, plan, stages, barriers);
      }
    }
    __syncwarp();
  }
  WaitForFormer();
  writer.LoadAdded();
  if (group < T::kGroups) {
    const DepthPart tiles = depth.PartOf(part);
    if constexpr (kWhole) {
      SumAllTiles<T>(part, of_part, tiles.end - tiles.first, plan, stages, barriers, sums);
    } else {
      SumTiles<T>(part, of_part, tiles.end - tiles.first, plan.num_stages, stages, barriers, sums);
    }
  }
  if constexpr (kWhole) {
    if (num_blocks > 1) {
      auto* const sent = reinterpret_cast<float*>(stages + plan.num_stages * T::kStageBytes);
      if (group < T::kGroups)
        SendSums<T>(cluster, num_rows, cluster.rank * T::kBlockParts + part, of_part, sums, sent,
                    &barriers.sent);
      WaitForSent(&barriers.sent, 0);
      writer.Write([&](int own_row, int four) { return SumOfSent<T>(sent, cluster, own_row, four); });
      return;
    }
  }
  __syncthreads();  // tiles have been read
  if (group < T::kGroups) StoreSums<T>(part, of_part, sums, block_sums);
  if (num_blocks == 1) {
    __syncthreads();
  } else {
    SyncCluster();
  }
  writer.Write([&](int own_row, int four) { return SumOfParts<T>(block_sums, cluster, own_row, four); });
  // Others may still fetch this block's sums.
  if (num_blocks > 1) MeetCluster();
}

template <typename E>
struct StreamedLaunch {
  const LinearShape& shape;
  int64_t rows;
  const LinearOperandsOf<E>& operands;
  LinearCut cut;
  cudaStream_t stream;
  KernelStart start;
  NextStart next;
  bool gated;
};

template <typename T, typename E>
BlockPlan PlanOf(const StreamedLaunch<E>& launch) {
  const int num_tiles = static_cast<int>(Quotient(launch.shape.depth, kDepth));
  const int places = static_cast<int>(Quotient(num_tiles, launch.cut.parts)) * T::kBlockParts;
  if (launch.next == NextStart::kAtOnce && places <= T::kStages) return {num_tiles, places, true};
  // Where blocks of few columns take turns, two share a multiprocessor, so that one's weights come while the other
  // begins or ends. Blocks of many columns change seldom, and are faster alone.
  const bool take_turns = launch.cut.blocks > 2 * kMultiprocessors && T::kColumns <= kGroupColumns;
  return {num_tiles, take_turns ? StagesOfParts(T::kStages / 2, T::kBlockParts) : T::kStages, false};
}

template <typename T, bool kWhole, typename E>
cudaError_t EncodeX(const StreamedLaunch<E>& launch, const BlockPlan& plan, CUtensorMap* map) {
  const int64_t depth = launch.shape.depth;
  if constexpr (kWhole) {
    return EncodeTilesMap(launch.operands.x, launch.rows, depth, T::kBlockRows,
                          plan.num_stages / T::kBlockParts, map);
  }
  return EncodeMap(launch.operands.x, launch.rows, depth, T::kBlockRows, kDepth, map);
}

template <typename T, typename Stored, bool kWhole, typename E>
cudaError_t LaunchPlan(const StreamedLaunch<E>& launch, const BlockPlan& plan) {
  const LinearShape& shape = launch.shape;
  const LinearOperandsOf<E>& operands = launch.operands;
  const auto kernel = StreamedLinearKernel<T, Stored, kWhole>;
  const int bytes = kWhole ? T::BytesOfWhole(plan.num_stages) : T::BytesOf(plan.num_stages);
  // Of each device, so at each launch.
  cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  CUtensorMap weights, x = {};
  error = EncodeMap(operands.weight, shape.columns, shape.depth, T::kColumns, kDepth, &weights);
  if (error == cudaSuccess) error = EncodeX<T, kWhole>(launch, plan, &x);
  if (error != cudaSuccess) return error;
  const auto cluster_blocks = static_cast<unsigned>(launch.cut.parts / launch.cut.block_parts);
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {1, 1, cluster_blocks};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(Quotient(launch.rows, T::kBlockRows)),
                        static_cast<unsigned>(Quotient(shape.columns, T::kColumns)), cluster_blocks);
  config.blockDim = T::kThreads;
  config.dynamicSmemBytes = bytes;
  config.stream = launch.stream;
  config.attrs = attributes;
  config.numAttrs = launch.start == KernelStart::kBesideFormer ? 2 : 1;
  const StreamedOutput output = {static_cast<int>(launch.rows),
                                 static_cast<int>(shape.columns),
                                 operands.bias,
                                 operands.residual,
                                 operands.y,
                                 launch.gated};
  return cudaLaunchKernelEx(&config, kernel, weights, x, output, plan);
}

// Steps that let kernels start at once have up to eight rows, so that only these have kernels for it.
template <typename T, typename Stored, typename E>
cudaError_t Launch(const StreamedLaunch<E>& launch) {
  const BlockPlan plan = PlanOf<T>(launch);
  if constexpr (T::kBlockRows == 8 && sizeof(Stored) == 2) {
    if (plan.starts_next_early && launch.shape.depth % kDepth == 0)
      return LaunchPlan<T, Stored, true>(launch, plan);
  }
  return LaunchPlan<T, Stored, false>(launch, plan);
}

template <int kColumns, int kBlockParts, typename Stored, typename E>
cudaError_t LaunchFew(const StreamedLaunch<E>& launch) {
  if (launch.rows <= 8) return Launch<Tile<E, 8, kColumns, kBlockParts>, Stored>(launch);
  if (launch.rows <= 16) return Launch<Tile<E, 16, kColumns, kBlockParts>, Stored>(launch);
  if (launch.rows <= 32) return Launch<Tile<E, 32, kColumns, kBlockParts>, Stored>(launch);
  return Launch<Tile<E, 64, kColumns, kBlockParts>, Stored>(launch);
}

template <typename E>
cudaError_t LaunchMany(const LinearShape& shape, int64_t rows, const LinearOperandsOf<E>& operands,
                       cudaStream_t stream, KernelStart start, bool gated) {
  int multiprocessors = 0;
  if (const cudaError_t error = CountMultiprocessors(&multiprocessors); error != cudaSuccess) return error;
  const bool is_float32 = shape.output == LinearOutput::kFloat32;
  const OutputKind kind =
      gated ? OutputKind::kSwiGlu : (is_float32 ? OutputKind::kFloat32 : OutputKind::kStored);
  const TilePlan plan = PlanOf(shape, rows, kind, multiprocessors);
  return LaunchTiledLinear(shape, rows, operands, kind, plan, stream, start);
}

template <typename E>
cudaError_t LaunchFor(const LinearShape& shape, int64_t rows, const LinearOperandsOf<E>& operands,
                      cudaStream_t stream, KernelStart start, NextStart next, bool gated) {
  if (HasTiles(shape, rows)) return LaunchMany(shape, rows, operands, stream, start, gated);
  LinearCut cut = next == NextStart::kAtOnce ? ApartOf(CutOf(shape)) : CutOf(shape);
  // A step of small kernels that begin early wants multiprocessors for the next more than for this one.
  if (!gated && next != NextStart::kAtOnce) cut = SpreadOf(shape, cut);
  const StreamedLaunch<E> launch = {shape, rows, operands, cut, stream, start, next, gated};
  if (shape.output == LinearOutput::kFloat32) return LaunchFew<128, 1, float>(launch);
  const bool has_parts = launch.cut.block_parts > 1;
  switch (launch.cut.tile_columns) {
    case 32:
      return has_parts ? LaunchFew<32, 2, E>(launch) : LaunchFew<32, 1, E>(launch);
    case 48:
      return has_parts ? LaunchFew<48, 2, E>(launch) : LaunchFew<48, 1, E>(launch);
    case 64:
      return has_parts ? LaunchFew<64, 2, E>(launch) : LaunchFew<64, 1, E>(launch);
    case 128:
      return LaunchFew<128, 1, E>(launch);
    default:
      return LaunchFew<192, 1, E>(launch);
  }
}

bool IsHopper() {
  int device = 0, major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major == 9;
}

bool IsBuilt(const LinearShape& shape, int64_t rows) {
  constexpr int64_t kSizeMax = 1 << 24;
  const int64_t columns_step = shape.output == LinearOutput::kFloat32 ? 4 : 8;
  return rows >= 1 && rows <= kSizeMax && shape.columns >= 1 && shape.columns <= kSizeMax / 4 &&
         shape.depth >= 8 && shape.depth <= kSizeMax && shape.depth % 8 == 0 &&
         shape.columns % columns_step == 0;
}

}  // namespace

template <typename E>
cudaError_t LaunchStreamedLinear(const LinearShape& shape, int64_t rows, const LinearOperandsOf<E>& operands,
                                 cudaStream_t stream, KernelStart start, NextStart next) {
  if (!IsBuilt(shape, rows)) return cudaErrorInvalidValue;
  if (!IsHopper()) return cudaErrorNotSupported;
  LinearOperandsOf<E> used = operands;
  if (!shape.has_bias) used.bias = nullptr;
  if (!shape.has_residual) used.residual = nullptr;
  return LaunchFor(shape, rows, used, stream, start, next, false);
}

template <typename E>
cudaError_t LaunchStreamedSwiGlu(const LinearShape& shape, int64_t rows, const LinearOperandsOf<E>& operands,
                                 cudaStream_t stream, KernelStart start, NextStart next) {
  if (!IsBuilt(shape, rows) || shape.has_bias || shape.has_residual ||
      shape.output == LinearOutput::kFloat32 || shape.columns % (2 * kSwiGluBlock) != 0) {
    return cudaErrorInvalidValue;
  }
  if (!IsHopper()) return cudaErrorNotSupported;
  LinearOperandsOf<E> used = operands;
  used.bias = nullptr, used.residual = nullptr;
  return LaunchFor(shape, rows, used, stream, start, next, true);
}

template cudaError_t LaunchStreamedLinear(const LinearShape&, int64_t, const LinearOperandsOf<__nv_bfloat16>&,
                                          cudaStream_t, KernelStart, NextStart);
template cudaError_t LaunchStreamedLinear(const LinearShape&, int64_t, const LinearOperandsOf<__half>&,
                                          cudaStream_t, KernelStart, NextStart);
template cudaError_t LaunchStreamedSwiGlu(const LinearShape&, int64_t, const LinearOperandsOf<__nv_bfloat16>&,
                                          cudaStream_t, KernelStart, NextStart);
template cudaError_t LaunchStreamedSwiGlu(const LinearShape&, int64_t, const LinearOperandsOf<__half>&,
                                          cudaStream_t, KernelStart, NextStart);

}  // namespace warpsmith
