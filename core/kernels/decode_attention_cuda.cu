#include <algorithm>

#include "core/kernels/attention_bounds.h"
#include "core/kernels/attention_items.cuh"
#include "core/kernels/attention_merge.cuh"
#include "core/kernels/attention_split.cuh"
#include "core/kernels/decode_attention_cuda.h"
#include "core/kernels/hopper.cuh"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/rotated_head.cuh"

namespace warpsmith {
namespace {

// Rows times KV heads, and splits of a row: with more, blocks would wait for places, or have several splits.
constexpr int64_t kHeadsMax = 8;
constexpr int64_t kSplitsMax = 8;

// T is what is stored: bfloat16 or float16.
template <typename T>
struct DecodeLaunch {
  AttentionInputs<T> inputs;
  AttentionLaunch<T> launch;
  NextStart next;
};

template <typename T, int kHeadDim, int kLaneRows>
struct DecodeMemory {
  SplitMemory<kHeadDim, kLaneRows> split;
  // A row of 16 bytes more lies in other banks than the one before.
  alignas(16) T queries[8 * kLaneRows][kHeadDim + 8];
  // Of the block's split, until they are merged.
  alignas(16) float values[8 * kLaneRows][kHeadDim];
  float2 scales[8 * kLaneRows];
};

// The row, KV head and split of a block. The splits of a row and head are a cluster.
struct DecodeWork {
  int row, head, split;
  int position;
  const int32_t* pages;

  __device__ int num_splits() const { return position / kAttentionSplitTokens + 1; }
  __device__ bool has_position() const { return split == num_splits() - 1; }
  __device__ AttentionItem Item(int group_size) const {
    const int first = split * kAttentionSplitTokens;
    return {row, head, row, 0, group_size, first, min(first + kAttentionSplitTokens - 1, position)};
  }
};

// The query heads of the group are rows of the block's products.
template <typename T>
__device__ LaneRows LaneRowsOf(const DecodeLaunch<T>& decode, const DecodeWork& work) {
  const int group_size = static_cast<int>(decode.inputs.group_size);
  LaneRows lane_rows;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int of_group = static_cast<int>(threadIdx.x) % kWarp / 4 + 8 * i;
    lane_rows.offsets[i] =
        of_group < group_size ? QueryHeadOffset(decode.launch.attention, work.row, work.head, of_group) : -1;
    lane_rows.positions[i] = work.position;
  }
  return lane_rows;
}

// Stores a lane's part of a head as token `token` of the split's keys or values.
template <typename T, int kHeadDim>
__device__ void StoreToken(const HeadPart<1>& part, int token, unsigned char* tiles) {
  ForColumns<1>(kHeadDim / 2, [&](int, int64_t column) {
    const auto place = [&](int at) {
      return reinterpret_cast<T*>(tiles + ChunkOffset<kHeadDim>(token, at / kElementsOfChunk)) +
             at % kElementsOfChunk;
    };
    StorePair(part.low[0], place(static_cast<int>(column)));
    StorePair(part.high[0], place(static_cast<int>(column) + kHeadDim / 2));
  });
}

// The lane's part of the position's key or value. It goes to its page at the end: until a store has reached memory, no
// block of the cluster passes a barrier.
struct FreshEntry {
  HeadPart<1> part;
  HeadKind kind = HeadKind::kQuery;  // a query: there is none
};

// Head `head` of the group, of which the block that has the position's split has key and value, too.
template <typename T, int kHeadDim, int kLaneRows>
__device__ void PutHead(const DecodeLaunch<T>& decode, const DecodeWork& work, int head,
                        const HeadPart<1>& part, DecodeMemory<T, kHeadDim, kLaneRows>& memory,
                        FreshEntry& fresh) {
  const int group_size = static_cast<int>(decode.inputs.group_size);
  if (head < group_size) {
    StoreHead(part, kHeadDim / 2, memory.queries[head]);
    return;
  }
  const bool is_key = head == group_size;
  fresh = {part, is_key ? HeadKind::kKey : HeadKind::kValue};
  StoreToken<T, kHeadDim>(part, work.position % kAttentionSplitTokens,
                          is_key ? memory.split.keys : memory.split.values);
}

// The heads of qkv that the block needs, a warp a head. A warp has at most one of key and value, which it returns.
// Waits for the former kernel.
template <typename T, int kHeadDim, int kLaneRows>
__device__ FreshEntry ComputeHeads(const DecodeLaunch<T>& decode, const DecodeWork& work,
                                   DecodeMemory<T, kHeadDim, kLaneRows>& memory) {
  const AttentionInputs<T>& inputs = decode.inputs;
  const int group_size = static_cast<int>(inputs.group_size), first_head = work.head * (group_size + 2);
  const int num_heads = group_size + (work.has_position() ? 2 : 0);
  const auto rotated = [&](int head) { return RotatedHead<1, T>(inputs, work.row, first_head + head); };
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const auto first = rotated(min(warp, num_heads - 1));
  FreshEntry fresh;
  WaitForFormer();
  if (warp < num_heads) PutHead(decode, work, warp, first.Compute(inputs.eps), memory, fresh);
  for (int head = warp + kSplitWarps; head < num_heads; head += kSplitWarps) {
    PutHead(decode, work, head, rotated(head).Compute(inputs.eps), memory, fresh);
  }
  return fresh;
}

template <int kHeadDim, typename T>
__device__ void StoreEntry(const DecodeLaunch<T>& decode, const DecodeWork& work, const FreshEntry& fresh) {
  if (fresh.kind == HeadKind::kQuery) return;
  StoreHead(fresh.part, kHeadDim / 2,
            DestinationOf(decode.inputs, HeadPlace{fresh.kind, work.head}, work.row));
}

template <typename T, int kHeadDim, int kLaneRows>
__device__ void LoadOwnQueries(int group_size, const DecodeMemory<T, kHeadDim, kLaneRows>& memory,
                               QueryRows<kHeadDim>& queries) {
  const int row = static_cast<int>(threadIdx.x) % kWarp / 4;
  const T* const rows[2] = {
      row < group_size ? memory.queries[row] : nullptr,
      kLaneRows == 2 && row + 8 < group_size ? memory.queries[row + 8 * (kLaneRows - 1)] : nullptr};
  LoadQueries(rows, queries);
}

// Query heads are shared out to the blocks that have splits, and to their warps.
template <typename T, int kHeadDim, int kLaneRows>
__device__ void MergeHeads(const DecodeLaunch<T>& decode, const DecodeWork& work,
                           DecodeMemory<T, kHeadDim, kLaneRows>& memory) {
  const PagedAttention<T>& attention = decode.launch.attention;
  const int num_splits = work.num_splits(), group_size = static_cast<int>(decode.inputs.group_size);
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int head = work.split + num_splits * warp; head < group_size; head += num_splits * kSplitWarps) {
    const auto* const values = reinterpret_cast<LaneColumns<kHeadDim>*>(memory.values[head]) + lane;
    MergeSplits<kHeadDim>(
        decode.launch.scale_log2, num_splits,
        [&](int split) { return *PlaceInBlock(&memory.scales[head], split); },
        [&](int split) { return *PlaceInBlock(values, split); },
        attention.output + QueryHeadOffset(attention, work.row, work.head, head));
  }
}

template <typename T, int kHeadDim, int kLaneRows>
__global__ void __launch_bounds__(kSplitThreads)
    DecodeKernel(const __grid_constant__ DecodeLaunch<T> decode) {
  extern __shared__ __align__(128) unsigned char shared[];
  if (decode.next == NextStart::kAtOnce) LetNextStart();
  auto& memory = *reinterpret_cast<DecodeMemory<T, kHeadDim, kLaneRows>*>(shared);
  const PagedAttention<T>& attention = decode.launch.attention;
  const int row = blockIdx.z, group_size = static_cast<int>(attention.group_size);
  // Both at once: each comes from far.
  const int position = LoadKept(attention.positions + row),
            first_page = LoadKept(attention.page_indptr + row);
  const DecodeWork work = {.row = row,
                           .head = static_cast<int>(blockIdx.y),
                           .split = static_cast<int>(blockIdx.x),
                           .position = position,
                           .pages = attention.page_indices + first_page};
  // The cluster does without blocks that have no split.
  if (work.split >= work.num_splits()) return;
  const AttentionItem item = work.Item(group_size);
  const SplitLoader<T, kHeadDim> loader(attention, work.pages, item, position);
  loader.Start(attention.key_pages, 0, loader.num_tiles(), memory.split.keys);
  CommitCopies();
  loader.Start(attention.value_pages, 0, loader.num_tiles(), memory.split.values);
  CommitCopies();
  LetNextStart();
  const FreshEntry fresh = ComputeHeads(decode, work, memory);
  const auto queries = [&] {
    QueryRows<kHeadDim> loaded;
    LoadOwnQueries(group_size, memory, loaded);
    return loaded;
  };
  const bool whole = work.num_splits() == 1;
  AttendSplit(decode.launch, item, LaneRowsOf(decode, work), whole, {memory.values[0], memory.scales, 1},
              queries, memory.split);
  if (whole) {
    StoreEntry<kHeadDim>(decode, work, fresh);
    return;
  }
  SyncCluster();  // all sums are there
  MergeHeads(decode, work, memory);
  StoreEntry<kHeadDim>(decode, work, fresh);
  MeetCluster();  // others have read this block's
}

template <int kHeadDim, int kLaneRows, typename T>
cudaError_t LaunchHeads(const DecodeLaunch<T>& decode, cudaStream_t stream, KernelStart start) {
  const PagedAttention<T>& attention = decode.launch.attention;
  const auto kernel = DecodeKernel<T, kHeadDim, kLaneRows>;
  constexpr size_t kBytes = sizeof(DecodeMemory<T, kHeadDim, kLaneRows>);
  // Of each device, so at each launch.
  const cudaError_t prepared =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kBytes));
  if (prepared != cudaSuccess) return prepared;
  const auto splits = static_cast<unsigned>(decode.launch.sums.num_splits_max);
  const dim3 blocks(splits, static_cast<unsigned>(attention.num_kv_heads),
                    static_cast<unsigned>(attention.rows));
  return StartClusters(start, kernel, blocks, splits, kSplitThreads, kBytes, stream, decode);
}

}  // namespace

bool AreFewSplits(int64_t rows, int64_t num_kv_heads, const PagedAttentionBounds& bounds) {
  return Decodes(bounds) && rows * num_kv_heads <= kHeadsMax && SplitsMax(bounds) <= kSplitsMax;
}

template <typename T>
bool CanDecodeAttention(const AttentionInputs<T>& inputs, const PagedAttention<T>& attention,
                        const PagedAttentionBounds& bounds) {
  return AreFewSplits(attention.rows, attention.num_kv_heads, bounds) && attention.rows >= 1 &&
         IsAttentionBuilt(attention, bounds) && inputs.rows == attention.rows &&
         inputs.num_kv_heads == attention.num_kv_heads && inputs.group_size == attention.group_size &&
         inputs.head_dim == attention.head_dim;
}

template <typename T>
cudaError_t LaunchDecodeAttention(const AttentionInputs<T>& inputs, const PagedAttention<T>& attention,
                                  const PagedAttentionBounds& bounds, cudaStream_t stream, KernelStart start,
                                  NextStart next) {
  if (!CanDecodeAttention(inputs, attention, bounds)) return cudaErrorInvalidValue;
  const DecodeLaunch<T> decode = {inputs, LaunchOf(attention, bounds, nullptr), next};
  const bool one_row = attention.group_size <= 8;
  if (attention.head_dim == 64) {
    return one_row ? LaunchHeads<64, 1>(decode, stream, start) : LaunchHeads<64, 2>(decode, stream, start);
  }
  return one_row ? LaunchHeads<128, 1>(decode, stream, start) : LaunchHeads<128, 2>(decode, stream, start);
}

template bool CanDecodeAttention(const AttentionInputs<__nv_bfloat16>&, const PagedAttention<__nv_bfloat16>&,
                                 const PagedAttentionBounds&);
template bool CanDecodeAttention(const AttentionInputs<__half>&, const PagedAttention<__half>&,
                                 const PagedAttentionBounds&);
template cudaError_t LaunchDecodeAttention(const AttentionInputs<__nv_bfloat16>&,
                                           const PagedAttention<__nv_bfloat16>&, const PagedAttentionBounds&,
                                           cudaStream_t, KernelStart, NextStart);
template cudaError_t LaunchDecodeAttention(const AttentionInputs<__half>&, const PagedAttention<__half>&,
                                           const PagedAttentionBounds&, cudaStream_t, KernelStart, NextStart);

}  // namespace warpsmith
