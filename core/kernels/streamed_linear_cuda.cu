#include <cuda_bf16.h>

#include <algorithm>

#include "core/kernels/depth_parts.h"
#include "core/kernels/hopper.cuh"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/streamed_linear_cuda.h"
#include "core/kernels/streamed_output.cuh"
#include "core/kernels/tensor_map_cuda.h"
#include "core/kernels/tiled_linear_cuda.h"
#include "core/kernels/warpgroup_products.cuh"

namespace warpsmith {
namespace {

constexpr int64_t kRowsMax = 64;  // that this file has kernels for

struct Barriers {
  uint64_t full[kStagesMax];
  uint64_t empty[kStagesMax];
};

// Tiles `part` of the depth, by one thread. The first weights come while the former kernel still works on x. All
// weights are read once, so they need not stay in the cache.
template <typename T>
__device__ void CopyTiles(const CUtensorMap* weights, const CUtensorMap* x, int column, int row,
                          DepthPart part, bool starts_next_early, unsigned char* stages, Barriers& barriers) {
  const auto copy_weights = [&](int tile, int stage) {
    ArriveExpecting(&barriers.full[stage], T::kStageBytes);
    CopyTile(stages + stage * T::kStageBytes, weights, (part.first + tile) * kDepth, column,
             &barriers.full[stage], CachePolicy::kEvictFirst);
  };
  const auto copy_x = [&](int tile, int stage) {
    CopyTile(stages + stage * T::kStageBytes + T::kWeightBytes, x, (part.first + tile) * kDepth, row,
             &barriers.full[stage], CachePolicy::kEvictNormal);
  };
  const int num_tiles = part.end - part.first, ahead = min(num_tiles, T::kStages);
  for (int i = 0; i < ahead; ++i) copy_weights(i, i);
  if (starts_next_early) LetNextStart();
  WaitForFormer();
  for (int i = 0; i < ahead; ++i) copy_x(i, i);
  for (int i = ahead; i < num_tiles; ++i) {
    const int stage = i % T::kStages, round = i / T::kStages;
    Wait(&barriers.empty[stage], (round + 1) % 2);
    copy_weights(i, stage);
    copy_x(i, stage);
  }
  // The next kernel's weights may come once all of this one's are under way.
  if (!starts_next_early) LetNextStart();
}

// The sums of a warpgroup over the block's tiles.
template <typename T>
__device__ void SumTiles(int group, int num_tiles, unsigned char* stages, Barriers& barriers,
                         float (&sums)[T::kSums]) {
  for (int tile = 0; tile < num_tiles; ++tile) {
    const int stage = tile % T::kStages;
    Wait(&barriers.full[stage], tile / T::kStages % 2);
    unsigned char* const weights = stages + stage * T::kStageBytes;
    const uint64_t a = TileDescriptor(weights + group * kGroupColumns * kDepth * 2);
    const uint64_t b = TileDescriptor(weights + T::kWeightBytes);
    BeginProducts();
#pragma unroll
    for (int step = 0; step < kDepth / kProductDepth; ++step) {
      Product<T::kBlockRows>(sums, a + 2 * step, b + 2 * step, tile > 0 || step > 0);
    }
    CommitProducts();
    // The tile before has been read.
    WaitForProducts<1>();
    if (tile > 0) Arrive(&barriers.empty[(tile - 1) % T::kStages]);
  }
  FinishProducts(sums);
}

// Block {i, j, k}: rows from i kRows, columns from j T::kColumns, part k of the depth. The blocks of an output are a
// cluster.
template <int kRows, int kColumns, typename Stored>
__global__ void __launch_bounds__(Tile<kRows, kColumns>::kThreads)
    StreamedLinearKernel(const __grid_constant__ CUtensorMap weights, const __grid_constant__ CUtensorMap x,
                         const __grid_constant__ StreamedOutput output, int num_tiles,
                         bool starts_next_early) {
  using T = Tile<kRows, kColumns>;
  extern __shared__ unsigned char memory[];
  __shared__ Barriers barriers;
  unsigned char* const stages =
      memory + (kTileAlignment - SharedAddress(memory) % kTileAlignment) % kTileAlignment;
  const int row = blockIdx.x * kRows, column = blockIdx.y * T::kColumns, num_blocks = gridDim.z;
  const DepthPart part = TilesOfPart(blockIdx.z, num_blocks, num_tiles);
  if (threadIdx.x == 0) {
    PrefetchMap(&weights);
    PrefetchMap(&x);
    for (int stage = 0; stage < T::kStages; ++stage) {
      InitBarrier(&barriers.full[stage], 1);
      InitBarrier(&barriers.empty[stage], T::kGroups * kWarpgroup);
    }
    FenceBarriers();
  }
  __syncthreads();

  const int group = WarpgroupIndex();
  const ClusterPlace cluster = {num_blocks, num_blocks == 1 ? 0 : static_cast<int>(ClusterRank())};
  OutputWriter<T, Stored> writer(output, cluster, row, column);
  float* const block_sums = reinterpret_cast<float*>(stages);
  float sums[T::kSums];
  if (group == T::kGroups) {
    if (IsElected()) CopyTiles<T>(&weights, &x, column, row, part, starts_next_early, stages, barriers);
    __syncwarp();
  }
  WaitForFormer();
  writer.LoadResidual();
  if (group < T::kGroups) SumTiles<T>(group, part.end - part.first, stages, barriers, sums);
  __syncthreads();  // tiles have been read
  if (group < T::kGroups) StoreSums<T>(group, sums, block_sums);
  if (num_blocks == 1) {
    __syncthreads();
  } else {
    SyncCluster();
  }
  writer.Write(block_sums);
  // Others may still fetch this block's sums.
  if (num_blocks > 1) MeetCluster();
}

template <int kRows, int kColumns, typename Stored>
cudaError_t Launch(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                   cudaStream_t stream, KernelStart start, NextStart next, bool gated) {
  using T = Tile<kRows, kColumns>;
  const auto kernel = StreamedLinearKernel<kRows, kColumns, Stored>;
  const unsigned num_parts = CutOf(shape).parts;
  const int num_tiles = static_cast<int>(Quotient(shape.depth, kDepth));
  const int tiles_of_part = static_cast<int>(Quotient(num_tiles, num_parts));
  const bool starts_next_early = next == NextStart::kAtOnce && tiles_of_part <= T::kStages;
  const int bytes = starts_next_early ? T::BytesOf(tiles_of_part) : T::kBytes;
  // Of each device, so at each launch.
  cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  CUtensorMap weights, x;
  error = EncodeMap(operands.weight, shape.columns, shape.depth, T::kColumns, kDepth, &weights);
  if (error != cudaSuccess) return error;
  error = EncodeMap(operands.x, rows, shape.depth, kRows, kDepth, &x);
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {1, 1, num_parts};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(Quotient(rows, kRows)),
                        static_cast<unsigned>(Quotient(shape.columns, T::kColumns)), num_parts);
  config.blockDim = T::kThreads;
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = start == KernelStart::kBesideFormer ? 2 : 1;
  const StreamedOutput output = {static_cast<int>(rows),
                                 static_cast<int>(shape.columns),
                                 operands.bias,
                                 operands.residual,
                                 operands.y,
                                 gated};
  return cudaLaunchKernelEx(&config, kernel, weights, x, output, num_tiles, starts_next_early);
}

template <int kColumns, typename Stored>
cudaError_t LaunchFew(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                      cudaStream_t stream, KernelStart start, NextStart next, bool gated) {
  if (rows <= 8) return Launch<8, kColumns, Stored>(shape, rows, operands, stream, start, next, gated);
  if (rows <= 16) return Launch<16, kColumns, Stored>(shape, rows, operands, stream, start, next, gated);
  if (rows <= 32) return Launch<32, kColumns, Stored>(shape, rows, operands, stream, start, next, gated);
  return Launch<64, kColumns, Stored>(shape, rows, operands, stream, start, next, gated);
}

// By the number of the device's multiprocessors.
cudaError_t LaunchMany(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                       cudaStream_t stream, KernelStart start, bool gated) {
  int device = 0, multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  return LaunchTiledLinear(shape, rows, operands, gated ? LinearGate::kSwiGlu : LinearGate::kNone,
                           PlanOf(shape, rows, multiprocessors), stream, start);
}

cudaError_t LaunchFor(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                      cudaStream_t stream, KernelStart start, NextStart next, bool gated) {
  if (rows > kRowsMax) return LaunchMany(shape, rows, operands, stream, start, gated);
  const bool floats = shape.output == LinearOutput::kFloat32;
  if (floats) return LaunchFew<128, float>(shape, rows, operands, stream, start, next, gated);
  switch (CutOf(shape).tile_columns) {
    case 32:
      return LaunchFew<32, __nv_bfloat16>(shape, rows, operands, stream, start, next, gated);
    case 64:
      return LaunchFew<64, __nv_bfloat16>(shape, rows, operands, stream, start, next, gated);
    case 128:
      return LaunchFew<128, __nv_bfloat16>(shape, rows, operands, stream, start, next, gated);
    default:
      return LaunchFew<192, __nv_bfloat16>(shape, rows, operands, stream, start, next, gated);
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

cudaError_t LaunchStreamedLinear(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                                 cudaStream_t stream, KernelStart start, NextStart next) {
  if (!IsBuilt(shape, rows)) return cudaErrorInvalidValue;
  if (!IsHopper()) return cudaErrorNotSupported;
  LinearOperands used = operands;
  if (!shape.has_bias) used.bias = nullptr;
  if (!shape.has_residual) used.residual = nullptr;
  return LaunchFor(shape, rows, used, stream, start, next, false);
}

cudaError_t LaunchStreamedSwiGlu(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                                 cudaStream_t stream, KernelStart start, NextStart next) {
  if (!IsBuilt(shape, rows) || shape.has_bias || shape.has_residual ||
      shape.output == LinearOutput::kFloat32 || shape.columns % (2 * kSwiGluBlock) != 0) {
    return cudaErrorInvalidValue;
  }
  if (!IsHopper()) return cudaErrorNotSupported;
  return LaunchFor(shape, rows, {operands.x, operands.weight, nullptr, nullptr, operands.y}, stream, start,
                   next, true);
}

}  // namespace warpsmith
