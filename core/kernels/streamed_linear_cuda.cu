#include <cuda_bf16.h>

#include <algorithm>

#include "core/kernels/hopper.cuh"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/streamed_linear_cuda.h"
#include "core/kernels/streamed_output.cuh"

namespace warpsmith {
namespace {

constexpr int kProductDepth = 16;

// The tiles of a part of the depth.
struct Part {
  int first;
  int end;
};

__device__ Part TilesOf(int part, int num_parts, int num_tiles) {
  return {num_tiles * part / num_parts, num_tiles * (part + 1) / num_parts};
}

struct Barriers {
  uint64_t full[kStagesMax];
  uint64_t empty[kStagesMax];
};

// Tiles `part` of the depth, by one thread. The first weights come while the former kernel still works on x.
template <typename T>
__device__ void CopyTiles(const CUtensorMap* weights, const CUtensorMap* x, int column, int row, Part part,
                          CachePolicy policy, unsigned char* stages, Barriers& barriers) {
  const int ahead = min(part.end - part.first, T::kStages);
  for (int i = 0; i < ahead; ++i) {
    ArriveExpecting(&barriers.full[i], T::kStageBytes);
    CopyTile(stages + i * T::kStageBytes, weights, (part.first + i) * kDepth, column, &barriers.full[i],
             policy);
  }
  WaitForFormer();
  for (int i = 0; i < ahead; ++i) {
    CopyTile(stages + i * T::kStageBytes + T::kWeightBytes, x, (part.first + i) * kDepth, row,
             &barriers.full[i], CachePolicy::kEvictNormal);
  }
  for (int tile = part.first + ahead; tile < part.end; ++tile) {
    const int index = tile - part.first, stage = index % T::kStages, round = index / T::kStages;
    Wait(&barriers.empty[stage], (round + 1) % 2);
    unsigned char* const to = stages + stage * T::kStageBytes;
    ArriveExpecting(&barriers.full[stage], T::kStageBytes);
    CopyTile(to, weights, tile * kDepth, column, &barriers.full[stage], policy);
    CopyTile(to + T::kWeightBytes, x, tile * kDepth, row, &barriers.full[stage], CachePolicy::kEvictNormal);
  }
  // The next kernel's weights may come once all of this one's are under way.
  LetNextStart();
}

// The sums of a warpgroup over `num_tiles` tiles, the first of which is the block's tile `first`.
template <typename T>
__device__ void SumTiles(int group, int first, int num_tiles, unsigned char* stages, Barriers& barriers,
                         float (&sums)[T::kSums]) {
  for (int tile = first; tile < first + num_tiles; ++tile) {
    const int stage = tile % T::kStages;
    Wait(&barriers.full[stage], tile / T::kStages % 2);
    unsigned char* const weights = stages + stage * T::kStageBytes;
    const uint64_t a = TileDescriptor(weights + group * kGroupColumns * kDepth * 2);
    const uint64_t b = TileDescriptor(weights + T::kWeightBytes);
    BeginProducts();
#pragma unroll
    for (int step = 0; step < kDepth / kProductDepth; ++step) {
      Product<T::kBlockRows>(sums, a + 2 * step, b + 2 * step, tile > first || step > 0);
    }
    CommitProducts();
    // The tile before has been read.
    WaitForProducts<1>();
    if (tile > first) Arrive(&barriers.empty[(tile - 1) % T::kStages]);
  }
  WaitForProducts<0>();
  if (num_tiles > 0) Arrive(&barriers.empty[(first + num_tiles - 1) % T::kStages]);
}

// The sums of all parts, added in their order.
template <typename T>
__device__ void SumParts(int group, int num_parts, int num_tiles, unsigned char* stages, Barriers& barriers,
                         float (&sums)[T::kSums]) {
  SumTiles<T>(group, 0, TilesOf(0, num_parts, num_tiles).end, stages, barriers, sums);
  for (int i = 1; i < num_parts; ++i) {
    const Part part = TilesOf(i, num_parts, num_tiles);
    float of_part[T::kSums];
    SumTiles<T>(group, part.first, part.end - part.first, stages, barriers, of_part);
#pragma unroll
    for (int j = 0; j < T::kSums; ++j) sums[j] += of_part[j];
  }
}

// Block {i, j, k}: rows from i kRows, columns from j T::kColumns. Either each part of the depth has a block k, and the
// blocks of an output are a cluster, or one block has all parts.
template <int kRows, int kGroups, typename Stored>
__global__ void __launch_bounds__(Tile<kRows, kGroups>::kThreads)
    StreamedLinearKernel(const __grid_constant__ CUtensorMap weights, const __grid_constant__ CUtensorMap x,
                         const __grid_constant__ StreamedOutput output, int num_tiles, int num_parts,
                         CachePolicy policy) {
  using T = Tile<kRows, kGroups>;
  extern __shared__ unsigned char memory[];
  __shared__ Barriers barriers;
  unsigned char* const stages =
      memory + (kTileAlignment - SharedAddress(memory) % kTileAlignment) % kTileAlignment;
  const int row = blockIdx.x * kRows, column = blockIdx.y * T::kColumns, num_blocks = gridDim.z;
  const Part part = TilesOf(blockIdx.z, num_blocks, num_tiles);
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

  const int group = threadIdx.x / kWarpgroup;
  const ClusterPlace cluster = {num_blocks, num_blocks == 1 ? 0 : static_cast<int>(ClusterRank())};
  OutputWriter<T, Stored> writer(output, cluster, row, column);
  float* const block_sums = reinterpret_cast<float*>(stages);
  float sums[T::kSums];
  if (group == T::kGroups) {
    if (threadIdx.x % kLanes == 0) {
      CopyTiles<T>(&weights, &x, column, row, part, policy, stages, barriers);
    }
    __syncwarp();
  }
  WaitForFormer();
  writer.LoadResidual();
  if (group < T::kGroups) {
    if constexpr (T::kBlockOfPart) {
      SumTiles<T>(group, 0, part.end - part.first, stages, barriers, sums);
    } else {
      SumParts<T>(group, num_parts, num_tiles, stages, barriers, sums);
    }
  }
  __syncthreads();  // tiles have been read
  if (group < T::kGroups) StoreSums<T>(group, sums, block_sums);
  if (num_blocks == 1) {
    __syncthreads();
  } else {
    SyncCluster();
  }
  writer.Write(block_sums);
  // Others may still fetch this block's sums.
  if (num_blocks > 1) SyncCluster();
}

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

EncodeTiled FindEncodeTiled() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  constexpr unsigned kVersion = 12000;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kVersion, cudaEnableDefault,
                                       &result) != cudaSuccess) {
    return nullptr;
  }
  return reinterpret_cast<EncodeTiled>(function);
}

// Tiles of `tile_rows` rows by kDepth of a dense [rows, depth]; what lies outside reads as zero.
bool EncodeMap(const __nv_bfloat16* matrix, int64_t rows, int64_t depth, int tile_rows, CUtensorMap* map) {
  static const EncodeTiled encode = FindEncodeTiled();
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(depth), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(depth) * 2};
  const cuuint32_t tile[2] = {kDepth, static_cast<cuuint32_t>(tile_rows)};
  const cuuint32_t steps[2] = {1, 1};
  return encode != nullptr &&
         encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<__nv_bfloat16*>(matrix), sizes, strides,
                tile, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

int64_t Quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

// How a product of few rows is cut into blocks: columns into tiles of `groups` * 64, the sum over depth into parts. A
// function of the shape alone.
struct Cut {
  int groups;
  int parts;
  int64_t blocks;
};

// The multiprocessors of a Hopper.
constexpr int64_t kMultiprocessors = 132;

// The most blocks in clusters of `parts` that surely run at once, one on a multiprocessor. A cluster lies within a
// group of at most 18 multiprocessors, so that clusters of more than two blocks leave some of each group idle.
constexpr int64_t BlocksMax(int parts) {
  if (parts <= 2) return kMultiprocessors;
  return parts == 4 ? 96 : 64;
}

Cut CutInto(const LinearShape& shape, int groups) {
  constexpr int64_t kTilesMin = 4;  // of a part
  const int64_t column_tiles = Quotient(shape.columns, groups * kGroupColumns);
  const int64_t tiles = Quotient(shape.depth, kDepth);
  int parts = 1;
  while (parts < kPartsMax && column_tiles * parts * 2 <= BlocksMax(parts * 2) &&
         tiles >= parts * 2 * kTilesMin)
    parts *= 2;
  return {groups, parts, column_tiles * parts};
}

// As many blocks as run at once, or where there are more, few for the last multiprocessors to wait for.
Cut CutOf(const LinearShape& shape) {
  const auto share = [](const Cut& cut) {
    return static_cast<double>(cut.blocks) /
           static_cast<double>(Quotient(cut.blocks, kMultiprocessors) * kMultiprocessors);
  };
  Cut best = CutInto(shape, 2);
  if (shape.output == LinearOutput::kFloat32) return best;
  for (const int groups : {3, 1}) {
    const Cut cut = CutInto(shape, groups);
    if (share(cut) > share(best) || (share(cut) == share(best) && cut.parts < best.parts)) best = cut;
  }
  return best;
}

template <int kRows, int kGroups, typename Stored>
cudaError_t Launch(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                   cudaStream_t stream, KernelStart start, bool gated) {
  using T = Tile<kRows, kGroups>;
  const auto kernel = StreamedLinearKernel<kRows, kGroups, Stored>;
  // Of each device, so at each launch.
  const cudaError_t prepared =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, T::kBytes);
  if (prepared != cudaSuccess) return prepared;
  CUtensorMap weights, x;
  if (!EncodeMap(operands.weight, shape.columns, shape.depth, T::kColumns, &weights) ||
      !EncodeMap(operands.x, rows, shape.depth, kRows, &x)) {
    return cudaErrorInvalidValue;
  }
  const int num_parts = CutOf(shape).parts;
  const unsigned num_blocks = T::kBlockOfPart ? num_parts : 1;
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {1, 1, num_blocks};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(Quotient(rows, kRows)),
                        static_cast<unsigned>(Quotient(shape.columns, T::kColumns)), num_blocks);
  config.blockDim = T::kThreads;
  config.dynamicSmemBytes = T::kBytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = start == KernelStart::kBesideFormer ? 2 : 1;
  const StreamedOutput output = {static_cast<int>(rows),
                                 static_cast<int>(shape.columns),
                                 operands.bias,
                                 operands.residual,
                                 operands.y,
                                 gated};
  // Where one row of blocks reads the weights they are read once.
  const CachePolicy policy = rows <= kRows ? CachePolicy::kEvictFirst : CachePolicy::kEvictNormal;
  return cudaLaunchKernelEx(&config, kernel, weights, x, output,
                            static_cast<int>(Quotient(shape.depth, kDepth)), num_parts, policy);
}

template <int kGroups, typename Stored>
cudaError_t LaunchFew(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                      cudaStream_t stream, KernelStart start, bool gated) {
  if (rows <= 8) return Launch<8, kGroups, Stored>(shape, rows, operands, stream, start, gated);
  if (rows <= 16) return Launch<16, kGroups, Stored>(shape, rows, operands, stream, start, gated);
  if (rows <= 32) return Launch<32, kGroups, Stored>(shape, rows, operands, stream, start, gated);
  return Launch<64, kGroups, Stored>(shape, rows, operands, stream, start, gated);
}

cudaError_t LaunchFor(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                      cudaStream_t stream, KernelStart start, bool gated) {
  const bool floats = shape.output == LinearOutput::kFloat32;
  if (rows > 64) {
    return floats ? Launch<128, 2, float>(shape, rows, operands, stream, start, gated)
                  : Launch<128, 2, __nv_bfloat16>(shape, rows, operands, stream, start, gated);
  }
  if (floats) return LaunchFew<2, float>(shape, rows, operands, stream, start, gated);
  const int groups = CutOf(shape).groups;
  if (groups == 1) return LaunchFew<1, __nv_bfloat16>(shape, rows, operands, stream, start, gated);
  if (groups == 2) return LaunchFew<2, __nv_bfloat16>(shape, rows, operands, stream, start, gated);
  return LaunchFew<3, __nv_bfloat16>(shape, rows, operands, stream, start, gated);
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
                                 cudaStream_t stream, KernelStart start) {
  if (!IsBuilt(shape, rows)) return cudaErrorInvalidValue;
  if (!IsHopper()) return cudaErrorNotSupported;
  LinearOperands used = operands;
  if (!shape.has_bias) used.bias = nullptr;
  if (!shape.has_residual) used.residual = nullptr;
  return LaunchFor(shape, rows, used, stream, start, false);
}

cudaError_t LaunchStreamedSwiGlu(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                                 cudaStream_t stream, KernelStart start) {
  if (!IsBuilt(shape, rows) || shape.has_bias || shape.has_residual ||
      shape.output == LinearOutput::kFloat32 || shape.columns % (2 * kSwiGluBlock) != 0) {
    return cudaErrorInvalidValue;
  }
  if (!IsHopper()) return cudaErrorNotSupported;
  return LaunchFor(shape, rows, {operands.x, operands.weight, nullptr, nullptr, operands.y}, stream, start,
                   true);
}

}  // namespace warpsmith
