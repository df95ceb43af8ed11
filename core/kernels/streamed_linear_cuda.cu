#include <cuda_bf16.h>

#include <algorithm>

#include "core/kernels/hopper.cuh"
#include "core/kernels/streamed_linear_cuda.h"

namespace warpsmith {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpgroup = 128;
constexpr int kGroups = 2;
constexpr int kGroupColumns = 64;  // of a warpgroup: the rows of a product
constexpr int kDepth = 64;         // of a tile: 128 bytes, what the copy engine swizzles
constexpr int kProductDepth = 16;
constexpr int kPartsMax = 8;
constexpr int kTileAlignment = 1024;
constexpr int kStagesMax = 16;

struct Output {
  int rows;
  int columns;
  const __nv_bfloat16* bias;
  const void* residual;
  void* y;
};

// A block has kRows rows of x and 128 columns of y, 64 for each of its warpgroups.
template <int kRows>
struct Tile {
  static constexpr int kBlockRows = kRows;
  static constexpr int kColumns = kGroups * kGroupColumns;
  static constexpr int kThreads = kGroups * kWarpgroup + kWarp;  // the last warp copies
  static constexpr int kSums = kRows / 2;                        // of a thread
  static constexpr int kWeightBytes = kColumns * kDepth * 2;
  static constexpr int kStageBytes = kWeightBytes + kRows * kDepth * 2;
  static constexpr int kStride = kColumns + 4;  // floats from row to row of sums, against conflicts of banks
  static constexpr int kSumBytes = kRows * kStride * 4;
  // Blocks of few rows share a multiprocessor, two at a time.
  static constexpr int kStages = (kRows <= 64 ? 110 << 10 : 200 << 10) / kStageBytes;
  static constexpr int kBytes = kStages * kStageBytes + kTileAlignment;
  static_assert(kSumBytes <= kStages * kStageBytes);
  static_assert(kStages <= kStagesMax);
  // Parts of the sum over depth: of few rows each has a block, of many rows one block has all, for there are enough.
  static constexpr bool kBlockOfPart = kRows <= 64;
};

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

// Tiles `part` of the depth, by one thread.
template <typename T>
__device__ void CopyTiles(const CUtensorMap* weights, const CUtensorMap* x, int column, int row, Part part,
                          CachePolicy policy, unsigned char* stages, Barriers& barriers) {
  for (int tile = part.first; tile < part.end; ++tile) {
    const int index = tile - part.first, stage = index % T::kStages, round = index / T::kStages;
    if (round > 0) Wait(&barriers.empty[stage], (round + 1) % 2);
    unsigned char* const to = stages + stage * T::kStageBytes;
    ArriveExpecting(&barriers.full[stage], T::kStageBytes);
    CopyTile(to, weights, tile * kDepth, column, &barriers.full[stage], policy);
    CopyTile(to + T::kWeightBytes, x, tile * kDepth, row, &barriers.full[stage], CachePolicy::kEvictNormal);
  }
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

// Fragments of a warpgroup to sums[row, column] in shared memory.
template <typename T>
__device__ void StoreSums(int group, const float (&sums)[T::kSums], float* to) {
  const int thread = threadIdx.x % kWarpgroup, lane = thread % kWarp;
  const int column = group * kGroupColumns + thread / kWarp * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < T::kBlockRows / 8; ++j) {
    float* const row = to + (j * 8 + lane % 4 * 2) * T::kStride + column;
    row[0] = sums[4 * j];
    row[T::kStride] = sums[4 * j + 1];
    row[8] = sums[4 * j + 2];
    row[T::kStride + 8] = sums[4 * j + 3];
  }
}

__device__ float4 Added(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

__device__ float4 Widened(uint2 bits) {
  const float2 low = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits.x));
  const float2 high = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits.y));
  return {low.x, low.y, high.x, high.y};
}

__device__ float4 LoadFour(const __nv_bfloat16* from) {
  return Widened(*reinterpret_cast<const uint2*>(from));
}
__device__ float4 LoadFour(const float* from) { return *reinterpret_cast<const float4*>(from); }

__device__ void StoreFour(float4 value, float* to) { *reinterpret_cast<float4*>(to) = value; }
__device__ void StoreFour(float4 value, __nv_bfloat16* to) {
  const __nv_bfloat162 low = __floats2bfloat162_rn(value.x, value.y),
                       high = __floats2bfloat162_rn(value.z, value.w);
  *reinterpret_cast<uint2*>(to) = {reinterpret_cast<const uint32_t&>(low),
                                   reinterpret_cast<const uint32_t&>(high)};
}

// Adds the parts of the cluster's blocks in their order, then bias and residual. Each block has its share of the rows.
template <typename T, typename Stored>
__device__ void WriteOutput(const Output& output, int num_blocks, int first_row, int first_column,
                            const float* sums) {
  constexpr int kFours = T::kColumns / 4;
  const int rank = num_blocks == 1 ? 0 : static_cast<int>(ClusterRank());
  const int num_rows = min(T::kBlockRows, output.rows - first_row);
  for (int i = threadIdx.x; i < num_rows * kFours; i += T::kThreads) {
    const int row = i / kFours, column = first_column + i % kFours * 4;
    if (row % num_blocks != rank || column >= output.columns) continue;
    const float* const mine = sums + row * T::kStride + i % kFours * 4;
    float4 value = num_blocks == 1 ? *reinterpret_cast<const float4*>(mine) : LoadOfBlock(mine, 0);
    for (int other = 1; other < num_blocks; ++other) value = Added(value, LoadOfBlock(mine, other));
    if (output.bias != nullptr) value = Added(value, LoadFour(output.bias + column));
    const int64_t place = static_cast<int64_t>(first_row + row) * output.columns + column;
    if (output.residual != nullptr)
      value = Added(value, LoadFour(static_cast<const Stored*>(output.residual) + place));
    StoreFour(value, static_cast<Stored*>(output.y) + place);
  }
}

// Block {i, j, k}: rows from i kRows, columns from j T::kColumns. Either each part of the depth has a block k, and the
// blocks of an output are a cluster, or one block has all parts.
template <int kRows, typename Stored>
__global__ void __launch_bounds__(Tile<kRows>::kThreads)
    StreamedLinearKernel(const __grid_constant__ CUtensorMap weights, const __grid_constant__ CUtensorMap x,
                         const Output output, int num_tiles, int num_parts, CachePolicy policy) {
  using T = Tile<kRows>;
  extern __shared__ unsigned char memory[];
  __shared__ Barriers barriers;
  unsigned char* const stages =
      memory + (kTileAlignment - SharedAddress(memory) % kTileAlignment) % kTileAlignment;
  const int row = blockIdx.x * kRows, column = blockIdx.y * T::kColumns, num_blocks = gridDim.z;
  const Part part = TilesOf(blockIdx.z, num_blocks, num_tiles);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < T::kStages; ++stage) {
      InitBarrier(&barriers.full[stage], 1);
      InitBarrier(&barriers.empty[stage], kGroups * kWarpgroup);
    }
    FenceBarriers();
  }
  __syncthreads();

  const int group = threadIdx.x / kWarpgroup;
  float* const block_sums = reinterpret_cast<float*>(stages);
  if (group == kGroups) {
    if (threadIdx.x % kWarp == 0) CopyTiles<T>(&weights, &x, column, row, part, policy, stages, barriers);
    __syncwarp();
    __syncthreads();
  } else {
    float sums[T::kSums];
    if constexpr (T::kBlockOfPart) {
      SumTiles<T>(group, 0, part.end - part.first, stages, barriers, sums);
    } else {
      SumParts<T>(group, num_parts, num_tiles, stages, barriers, sums);
    }
    // Nobody reads tiles any more.
    __syncthreads();
    StoreSums<T>(group, sums, block_sums);
  }
  if (num_blocks == 1) {
    __syncthreads();
  } else {
    SyncCluster();
  }
  WriteOutput<T, Stored>(output, num_blocks, row, column, block_sums);
  // Others may still read this block's sums.
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

template <int kRows, typename Stored>
cudaError_t Launch(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                   cudaStream_t stream) {
  using T = Tile<kRows>;
  const auto kernel = StreamedLinearKernel<kRows, Stored>;
  // For each launch: it holds for the current device alone.
  const cudaError_t prepared =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, T::kBytes);
  if (prepared != cudaSuccess) return prepared;
  CUtensorMap weights, x;
  if (!EncodeMap(operands.weight, shape.columns, shape.depth, T::kColumns, &weights) ||
      !EncodeMap(operands.x, rows, shape.depth, kRows, &x)) {
    return cudaErrorInvalidValue;
  }
  const int num_parts = DepthParts(shape);
  const unsigned num_blocks = T::kBlockOfPart ? num_parts : 1;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {1, 1, num_blocks};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(Quotient(rows, kRows)),
                        static_cast<unsigned>(Quotient(shape.columns, T::kColumns)), num_blocks);
  config.blockDim = T::kThreads;
  config.dynamicSmemBytes = T::kBytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  const Output output = {static_cast<int>(rows), static_cast<int>(shape.columns), operands.bias,
                         operands.residual, operands.y};
  // Where one row of blocks reads the weights they are read once.
  const CachePolicy policy = rows <= kRows ? CachePolicy::kEvictFirst : CachePolicy::kEvictNormal;
  return cudaLaunchKernelEx(&config, kernel, weights, x, output,
                            static_cast<int>(Quotient(shape.depth, kDepth)), num_parts, policy);
}

template <typename Stored>
cudaError_t LaunchFor(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                      cudaStream_t stream) {
  if (rows <= 8) return Launch<8, Stored>(shape, rows, operands, stream);
  if (rows <= 16) return Launch<16, Stored>(shape, rows, operands, stream);
  if (rows <= 32) return Launch<32, Stored>(shape, rows, operands, stream);
  if (rows <= 64) return Launch<64, Stored>(shape, rows, operands, stream);
  return Launch<128, Stored>(shape, rows, operands, stream);
}

bool IsHopper() {
  int device = 0, major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major == 9;
}

}  // namespace

int DepthParts(const LinearShape& shape) {
  // As many blocks as the 132 multiprocessors of a Hopper take at once, where each has work for a while.
  constexpr int64_t kBlocksMax = 132, kTilesMin = 4;
  const int64_t column_tiles = Quotient(shape.columns, kGroups * kGroupColumns);
  const int64_t tiles = Quotient(shape.depth, kDepth);
  int parts = 1;
  while (parts < kPartsMax && column_tiles * parts * 2 <= kBlocksMax && tiles >= parts * 2 * kTilesMin)
    parts *= 2;
  return parts;
}

cudaError_t LaunchStreamedLinear(const LinearShape& shape, int64_t rows, const LinearOperands& operands,
                                 cudaStream_t stream) {
  constexpr int64_t kSizeMax = 1 << 24;
  const int64_t columns_step = shape.output == LinearOutput::kFloat32 ? 4 : 8;
  if (rows < 1 || rows > kSizeMax || shape.columns < 1 || shape.columns > kSizeMax / 4 || shape.depth < 8 ||
      shape.depth > kSizeMax || shape.depth % 8 != 0 || shape.columns % columns_step != 0) {
    return cudaErrorInvalidValue;
  }
  if (!IsHopper()) return cudaErrorNotSupported;
  LinearOperands used = operands;
  if (!shape.has_bias) used.bias = nullptr;
  if (!shape.has_residual) used.residual = nullptr;
  return shape.output == LinearOutput::kFloat32 ? LaunchFor<float>(shape, rows, used, stream)
                                                : LaunchFor<__nv_bfloat16>(shape, rows, used, stream);
}

}  // namespace warpsmith
