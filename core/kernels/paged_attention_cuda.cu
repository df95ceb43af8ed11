#include <algorithm>

#include "core/kernels/attention_bounds.h"
#include "core/kernels/attention_items.cuh"
#include "core/kernels/attention_merge.cuh"
#include "core/kernels/attention_rows.cuh"
#include "core/kernels/attention_split.cuh"
#include "core/kernels/attention_tile.cuh"
#include "core/kernels/attention_tile_loader.cuh"
#include "core/kernels/item_walk.cuh"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/paged_attention_cuda.h"

namespace warpsmith {
namespace {

constexpr int kMergeThreads = 128;
// Rows times KV heads up to which a split may have a block: with more, warps alone keep the device busy.
constexpr int64_t kSplitBlockHeadsMax = 32;

// The sums of the splits so far: values in shared memory, a column of it a thread, so that registers have room for the
// split at hand.
template <int kHeadDim, int kWarps>
struct MergedSplits {
  float* values;
  float largest[2], sum[2];

  __device__ float& Value(int j, int i) const { return values[(4 * j + i) * kWarps * kWarp + threadIdx.x]; }

  __device__ void Add(float scale_log2, bool first, const PartialSoftmax<kHeadDim>& part) {
    SoftmaxMerge merges[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (!first) merges[i] = MergeLargest(scale_log2, part.largest[i], largest[i]);
      if (first) largest[i] = part.largest[i];
      sum[i] = first ? part.sum[i] : Merged(merges[i], sum[i], part.sum[i]);
    }
#pragma unroll
    for (int j = 0; j < kHeadDim / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        Value(j, i) = first ? part.values[j][i] : Merged(merges[i / 2], Value(j, i), part.values[j][i]);
      }
    }
  }
  __device__ void Take(PartialSoftmax<kHeadDim>& softmax) const {
#pragma unroll
    for (int j = 0; j < kHeadDim / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) softmax.values[j][i] = Value(j, i);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) softmax.sum[i] = sum[i];
  }
};

template <int kHeadDim, int kWarps>
constexpr int kSharedBytes = kTilesBytes<kHeadDim> +
                             kWarps* kWarpRows* kHeadDim* static_cast<int>(sizeof(float));

template <typename T, int kHeadDim, int kWarps>
__device__ void AttendItem(const AttentionLaunch<T>& launch, const AttentionItem& item,
                           unsigned char* shared) {
  const PagedAttention<T>& attention = launch.attention;
  const uint32_t tiles = SharedAddress(shared);
  AttentionTileLoader<T, kHeadDim, kWarps> loader(attention, tiles);
  loader.Begin(item);
  for (int i = 0; i < kTileStages - 1; ++i) loader.Start();
  const LaneRows lane_rows = LaneRowsOf(attention, item, static_cast<int>(threadIdx.x) / kWarp);
  const int(&positions)[2] = lane_rows.positions;
  const int warp_first = __reduce_min_sync(kWholeWarp, min(positions[0], positions[1]));
  // A warp without rows has nothing to look at.
  const bool idle = __all_sync(kWholeWarp, lane_rows.offsets[0] < 0 && lane_rows.offsets[1] < 0);
  const int warp_last = idle ? -1 : __reduce_max_sync(kWholeWarp, max(positions[0], positions[1]));
  QueryRows<kHeadDim> queries;
  LoadItemQueries(attention, lane_rows, queries);

  PartialSoftmax<kHeadDim> softmax;
  softmax.Clear();
  MergedSplits<kHeadDim, kWarps> merged = {reinterpret_cast<float*>(shared + kTilesBytes<kHeadDim>), {}, {}};
  int stage = 0;
  for (int first = item.first_token; first <= item.last_token; first += kTileTokens) {
    WaitForCopies<kTileStages - 2>();
    __syncthreads();  // the tile is there for all, and all have done with the one before, whose place is next
    loader.Start();
    if (first <= warp_last) {
      AttendTile<T>(launch.scale_log2, queries, positions, warp_first, first,
                    tiles + stage * 2 * kTileBytes<kHeadDim>, softmax);
    }
    stage = stage + 1 == kTileStages ? 0 : stage + 1;
    const int next = first + kTileTokens;
    if (next % kAttentionSplitTokens != 0 && next <= item.last_token) continue;
    const int split_first = first / kAttentionSplitTokens * kAttentionSplitTokens;
    if (split_first > warp_last) continue;
    softmax.SumOverColumns();
    merged.Add(launch.scale_log2, split_first == 0, softmax);
    softmax.Clear();
  }
  __syncthreads();  // before the next item's copies
  merged.Take(softmax);
  WriteOutput(attention, lane_rows, softmax);
}

// Rows of chunks.
template <typename T, int kHeadDim, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp) AttentionKernel(const AttentionLaunch<T> launch) {
  extern __shared__ __align__(128) unsigned char shared[];
  LetNextStart();
  const PagedAttention<T>& attention = launch.attention;
  const auto items_of = [&](int query) { return ItemsOf<kWarps>(attention, query); };
  ItemWalk<decltype(items_of)> walk(attention.num_queries, items_of);
  const int heads = static_cast<int>(attention.num_kv_heads);
  WaitForFormer();
  // Blocks beside each other read the heads of the same tokens, which lie beside each other.
  // The last rows of a chunk see most, so their blocks come first.
  for (int64_t i = gridDim.x - 1 - blockIdx.x;; i += gridDim.x) {
    const WalkedItem found = walk.Find(i / heads);
    if (found.query < 0) return;
    AttendItem<T, kHeadDim, kWarps>(
        launch, ItemAt<kWarps>(attention, found.query, found.index, static_cast<int>(i % heads)), shared);
  }
}

template <typename T>
__device__ const int32_t* PagesOf(const PagedAttention<T>& attention, int query) {
  return attention.page_indices + attention.page_indptr[query];
}

// The item of a block. Entries of its position may be written by the former kernel, all before them are not.
template <typename T, int kHeadDim, int kLaneRows>
__device__ void StartItem(const PagedAttention<T>& attention, const AttentionItem& item,
                          SplitMemory<kHeadDim, kLaneRows>& memory) {
  const SplitLoader<T, kHeadDim> loader(attention, PagesOf(attention, item.query), item, -1);
  const int num_tiles = loader.num_tiles();
  const int constant = item.last_token == attention.positions[item.query] ? num_tiles - 1 : num_tiles;
  loader.Start(attention.key_pages, 0, constant, memory.keys);
  loader.Start(attention.value_pages, 0, constant, memory.values);
  WaitForFormer();
  loader.Start(attention.key_pages, constant, num_tiles, memory.keys);
  loader.Start(attention.value_pages, constant, num_tiles, memory.values);
  CommitCopies();
  CommitCopies();  // none, in place of the values alone
}

// Of a thread, so that a block has room beside one of the former kernel, which has 62 of 256 threads.
constexpr int kSplitRegisters = 192;
// Warps of a block that take rows alone, for which a multiprocessor has room.
constexpr int kRowWarps = 4;

template <int kHeadDim, int kLaneRows>
constexpr int kSplitBytes = std::max(static_cast<int>(sizeof(SplitMemory<kHeadDim, kLaneRows>)),
                                     kRowWarps* kTilesBytes<kHeadDim>);

// Whether each item can have a block at once. By a warp.
template <typename T>
__device__ bool HasBlockForEach(const PagedAttention<T>& attention) {
  int items = 0;
  for (int query = static_cast<int>(threadIdx.x) % kWarp; query < attention.num_queries; query += kWarp) {
    items += ItemsOf<kDecodeWarps>(attention, query);
  }
  return __reduce_add_sync(kWholeWarp, items) * attention.num_kv_heads <= gridDim.x;
}

// A block a split, where each has one: on an H100 128 splits take 9 us so, and 10 to 12 by warps. Of more, blocks would
// take turns, and 256 take 16 us, by warps 11. Only the device knows how many there are.
template <typename T, int kHeadDim, int kLaneRows>
__global__ void __maxnreg__(kSplitRegisters) SplitKernel(const __grid_constant__ AttentionLaunch<T> launch) {
  extern __shared__ __align__(128) unsigned char shared[];
  LetNextStart();
  auto& memory = *reinterpret_cast<SplitMemory<kHeadDim, kLaneRows>*>(shared);
  const PagedAttention<T>& attention = launch.attention;
  if (!HasBlockForEach(attention)) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    if (warp >= kRowWarps) return;
    RowItems<T, kHeadDim>(launch, blockIdx.x + int64_t{gridDim.x} * warp, int64_t{gridDim.x} * kRowWarps,
                          shared + warp * kTilesBytes<kHeadDim>)
        .AttendAll();
    return;
  }
  const auto items_of = [&](int query) { return ItemsOf<kDecodeWarps>(attention, query); };
  ItemWalk<decltype(items_of)> walk(attention.num_queries, items_of);
  const int heads = static_cast<int>(attention.num_kv_heads), index = static_cast<int>(blockIdx.x);
  const WalkedItem found = walk.Find(index / heads);
  if (found.query < 0) return;
  const AttentionItem item = ItemAt<kDecodeWarps>(attention, found.query, found.index, index % heads);
  StartItem(attention, item, memory);
  const LaneRows lane_rows = LaneRowsOf(attention, item, 0);
  const auto queries = [&] {
    QueryRows<kHeadDim> loaded;
    LoadItemQueries(attention, lane_rows, loaded);
    return loaded;
  };
  AttendSplit(launch, item, lane_rows, IsWhole(launch, item), SplitPlaceOf<kHeadDim>(launch, item), queries,
              memory);
}

// A warp a query head of a row that has more than one split.
template <typename T, int kHeadDim>
__global__ void __launch_bounds__(kMergeThreads) MergeKernel(const AttentionLaunch<T> launch) {
  const PagedAttention<T>& attention = launch.attention;
  const int64_t query_heads = attention.num_kv_heads * attention.group_size;
  const int64_t head = int64_t{blockIdx.x} * (kMergeThreads / kWarp) + threadIdx.x / kWarp;
  LetNextStart();
  if (head >= attention.rows * query_heads) return;
  const int num_splits = attention.positions[head / query_heads] / kAttentionSplitTokens + 1;
  WaitForFormer();  // where there is nothing to merge, too: the next kernel waits for this one alone
  if (num_splits == 1) return;
  const float2* const scales = launch.sums.scales + head * launch.sums.num_splits_max;
  const auto* const parts = reinterpret_cast<const LaneColumns<kHeadDim>*>(launch.sums.values) +
                            head * launch.sums.num_splits_max * kWarp + threadIdx.x % kWarp;
  MergeSplits<kHeadDim>(
      launch.scale_log2, num_splits, [&](int split) { return scales[split]; },
      [&](int split) { return parts[int64_t{split} * kWarp]; }, attention.output + head * kHeadDim);
}

// As many blocks as run at once, which share the items that there are.
template <typename Kernel>
cudaError_t BlocksAtOnce(Kernel kernel, int threads, size_t shared_bytes, int64_t items_max,
                         int64_t& blocks) {
  int device = 0, multiprocessors = 0, of_multiprocessor = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error == cudaSuccess) {
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_multiprocessor, kernel, threads, shared_bytes);
  }
  blocks = std::min(int64_t{multiprocessors} * of_multiprocessor, items_max);
  return error;
}

// `blocks` 0: as many as run at once.
template <typename Kernel, typename T>
cudaError_t LaunchAttention(Kernel kernel, int threads, size_t shared_bytes, int64_t blocks,
                            const AttentionLaunch<T>& launch, cudaStream_t stream, KernelStart start) {
  const PagedAttention<T>& attention = launch.attention;
  cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(shared_bytes));
  if (error == cudaSuccess && blocks == 0) {
    error = BlocksAtOnce(kernel, threads, shared_bytes,
                         attention.num_queries * launch.sums.num_splits_max * attention.num_kv_heads, blocks);
  }
  if (error != cudaSuccess) return error;
  return StartKernel(start, kernel, static_cast<unsigned>(blocks), threads, shared_bytes, stream, launch);
}

template <int kHeadDim, typename T>
cudaError_t LaunchChunks(const AttentionLaunch<T>& launch, cudaStream_t stream, KernelStart start) {
  // The items cannot be more, and each has a block: the device gives them out as others end.
  const PagedAttention<T>& attention = launch.attention;
  const int64_t blocks =
      attention.num_kv_heads *
      (attention.num_queries + attention.rows * attention.group_size / (kChunkWarps * kWarpRows));
  return LaunchAttention(AttentionKernel<T, kHeadDim, kChunkWarps>, kChunkWarps * kWarp,
                         kSharedBytes<kHeadDim, kChunkWarps>, blocks, launch, stream, start);
}

template <int kHeadDim, typename T>
cudaError_t LaunchHeads(const AttentionLaunch<T>& launch, const PagedAttentionBounds& bounds,
                        cudaStream_t stream, KernelStart start) {
  if (!Decodes(bounds)) return LaunchChunks<kHeadDim>(launch, stream, start);
  const PagedAttention<T>& attention = launch.attention;
  const bool few = attention.rows * attention.num_kv_heads <= kSplitBlockHeadsMax;
  const cudaError_t error =
      !few ? LaunchAttention(RowsKernel<T, kHeadDim>, kWarp, kTilesBytes<kHeadDim>, 0, launch, stream, start)
      : attention.group_size <= 8 ? LaunchAttention(SplitKernel<T, kHeadDim, 1>, kSplitThreads,
                                                    kSplitBytes<kHeadDim, 1>, 0, launch, stream, start)
                                  : LaunchAttention(SplitKernel<T, kHeadDim, 2>, kSplitThreads,
                                                    kSplitBytes<kHeadDim, 2>, 0, launch, stream, start);
  if (error != cudaSuccess || launch.sums.num_splits_max == 1) return error;
  constexpr int64_t kHeadsOfBlock = kMergeThreads / kWarp;
  const int64_t heads = attention.rows * attention.num_kv_heads * attention.group_size;
  const auto blocks = static_cast<unsigned>((heads + kHeadsOfBlock - 1) / kHeadsOfBlock);
  return StartKernel(start, MergeKernel<T, kHeadDim>, blocks, kMergeThreads, 0, stream, launch);
}

}  // namespace

size_t PagedAttentionWorkspaceBytes(int64_t rows, int64_t num_kv_heads, int64_t group_size, int64_t head_dim,
                                    const PagedAttentionBounds& bounds) {
  if (!Decodes(bounds) || SplitsMax(bounds) == 1) return 0;
  return static_cast<size_t>(rows * num_kv_heads * group_size * SplitsMax(bounds) * (head_dim + 2)) *
         sizeof(float);
}

template <typename T>
cudaError_t LaunchPagedAttention(const PagedAttention<T>& attention, const PagedAttentionBounds& bounds,
                                 void* workspace, cudaStream_t stream, KernelStart start) {
  if (!IsAttentionBuilt(attention, bounds)) return cudaErrorInvalidValue;
  if (attention.num_queries == 0) return cudaSuccess;
  const AttentionLaunch<T> launch = LaunchOf(attention, bounds, workspace);
  return attention.head_dim == 64 ? LaunchHeads<64>(launch, bounds, stream, start)
                                  : LaunchHeads<128>(launch, bounds, stream, start);
}

template cudaError_t LaunchPagedAttention(const PagedAttention<__nv_bfloat16>&, const PagedAttentionBounds&,
                                          void*, cudaStream_t, KernelStart);
template cudaError_t LaunchPagedAttention(const PagedAttention<__half>&, const PagedAttentionBounds&, void*,
                                          cudaStream_t, KernelStart);

}  // namespace warpsmith
