// Draws a token by a block, from what each chunk of a row weighs: first the chunk, then the id in it. A thread has a
// chunk and then an id, so that little code runs: it is fetched for a few microseconds' work.
#ifndef WARPSMITH_CORE_KERNELS_TOKEN_CHOICE_CUH_
#define WARPSMITH_CORE_KERNELS_TOKEN_CHOICE_CUH_

#include <cstdint>

#include "core/kernels/chunk_sums.cuh"
#include "core/kernels/reductions.cuh"
#include "core/kernels/scaled_row.cuh"
#include "core/kernels/token_sampling.h"

namespace warpsmith {

static_assert(kSamplingChunk == kSamplingThreads, "a thread has an id of a chunk");

// The chunks of a thread, which lie side by side: one in rows of at most 262,144 ids.
struct ThreadChunks {
  int first, count;
};

__device__ inline ThreadChunks ChunksOfThread(int num_chunks) {
  const int per_thread = (num_chunks + kSamplingThreads - 1) / kSamplingThreads;
  const int first = min(static_cast<int>(threadIdx.x) * per_thread, num_chunks);
  return {first, min(per_thread, num_chunks - first)};
}

// What warps of a block tell each other, in shared memory.
struct ChoiceScratch {
  double sums[kSamplingWarps];
  SampledInterval found[kSamplingWarps];
};

// The intervals of a block's threads lie one after another.
struct BlockScan {
  double before;  // the threads before this one
  double total;
};

// By the whole block. Sums are made in one order. Twice in a row it wants all threads to meet in between.
__device__ inline BlockScan ScanBlock(double length, ChoiceScratch* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  double sum = length;
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const double before = __shfl_up_sync(kWholeWarp, sum, offset);
    if (lane >= offset) sum += before;
  }
  if (lane == kWarp - 1) scratch->sums[warp] = sum;
  const double of_lanes = __shfl_up_sync(kWholeWarp, sum, 1);
  __syncthreads();
  double of_warps = 0.0, total = 0.0;
#pragma unroll
  for (int i = 0; i < kSamplingWarps; ++i) {
    if (i == warp) of_warps = total;
    total += scratch->sums[i];
  }
  return {of_warps + (lane == 0 ? 0.0 : of_lanes), total};
}

// By the whole block, in every thread: what `refine()` gives in the last thread that has a length and starts at or
// before `target`. Index -1: there is none.
template <typename Refine>
__device__ SampledInterval LastInterval(double length, double start, double target, ChoiceScratch* scratch,
                                        Refine refine) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const unsigned found = __ballot_sync(kWholeWarp, length > 0 && start <= target);
  if (found == 0 && lane == 0) scratch->found[warp].index = -1;
  if (found != 0 && lane == kWarp - 1 - __clz(static_cast<int>(found))) scratch->found[warp] = refine();
  __syncthreads();
  int last = 0;
#pragma unroll
  for (int i = 1; i < kSamplingWarps; ++i) last = scratch->found[i].index >= 0 ? i : last;
  return scratch->found[last];
}

// The chunk whose interval holds `target`. `scan` is that of the threads' weights.
__device__ inline SampledInterval ChooseChunk(const ThreadChunks& mine, const double* weights, double length,
                                              const BlockScan& scan, double target, ChoiceScratch* scratch) {
  return LastInterval(length, scan.before, target, scratch, [&] {
    SampledInterval chunk = IntervalOf(weights + mine.first, mine.count, scan.before, target);
    chunk.index += mine.first;
    return chunk;
  });
}

// This thread's logit of a chunk.
__device__ inline float LogitOfChunk(const ScaledRow& row, int64_t chunk) {
  const int64_t id = chunk * kSamplingChunk + threadIdx.x;
  return id < row.size ? row.logits[id] : -INFINITY;
}

// The id whose interval holds `target`, in every thread; this thread's weighs `weight`.
__device__ inline int32_t ChooseId(const SampledInterval& chunk, float weight, double target,
                                   ChoiceScratch* scratch) {
  const double start = chunk.start + ScanBlock(weight, scratch).before;
  const int64_t id = chunk.index * kSamplingChunk + threadIdx.x;
  return static_cast<int32_t>(LastInterval(weight, start, target, scratch, [&] {
                                return SampledInterval{id, start};
                              }).index);
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TOKEN_CHOICE_CUH_
