// Draws a token by one warp, from what each chunk of a row weighs: first the chunk, then the id in it.
#ifndef WARPSMITH_CORE_KERNELS_TOKEN_CHOICE_CUH_
#define WARPSMITH_CORE_KERNELS_TOKEN_CHOICE_CUH_

#include <cstdint>

#include "core/kernels/chunk_sums.cuh"
#include "core/kernels/reductions.cuh"
#include "core/kernels/scaled_row.cuh"
#include "core/kernels/token_sampling.h"

namespace warpsmith {

// The chunks of a lane, which lie side by side.
struct LaneChunks {
  int first, count, per_lane;
};

__device__ inline LaneChunks ChunksOfLane(int num_chunks) {
  const int per_lane = (num_chunks + kWarp - 1) / kWarp;
  const int first = min(static_cast<int>(threadIdx.x) % kWarp * per_lane, num_chunks);
  return {first, min(per_lane, num_chunks - first), per_lane};
}

// The largest logit of the row, in every lane of every warp that calls it.
__device__ inline float LargestOf(const uint64_t* chunks, int num_chunks) {
  unsigned largest = AscendingBits(-INFINITY);
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < num_chunks; i += kWarp) {
    largest = max(largest, AscendingBits(ChunkSumOf(chunks[i]).largest));
  }
  return OfAscendingBits(__reduce_max_sync(kWholeWarp, largest));
}

// weights[c] = what chunk c weighs beside the row's largest logit; NaN where the row has no distribution. Returns the
// sum of this lane's.
__device__ inline double WeighChunks(const ScaledRow& row, const uint64_t* chunks, const LaneChunks& mine,
                                     double* weights) {
  double sum = 0.0;
  for (int i = mine.first; i < mine.first + mine.count; ++i) {
    const ChunkSum chunk = ChunkSumOf(chunks[i]);
    weights[i] = static_cast<double>(chunk.sum) * row.WeightOf(chunk.largest);
    sum += weights[i];
  }
  return sum;
}

// The sum of the lanes before this one.
__device__ inline double SumBefore(double value) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  double sum = value;
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const double before = __shfl_up_sync(kWholeWarp, sum, offset);
    if (lane >= offset) sum += before;
  }
  const double before = __shfl_up_sync(kWholeWarp, sum, 1);
  return lane == 0 ? 0.0 : before;
}

template <typename Length>
__device__ double SumOf(const Length* lengths, int count) {
  double sum = 0.0;
  for (int i = 0; i < count; ++i) sum += static_cast<double>(lengths[i]);
  return sum;
}

// The last interval of all lanes, in every lane. A lane's `lengths`, whose sum is `sum`, follow those of the lane
// before, `per_lane` each; the first lane's start at `start`. Index -1 where none has a length.
template <typename Length>
__device__ SampledInterval WarpInterval(const Length* lengths, int count, int per_lane, double sum,
                                        double start, double target) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const double before = start + SumBefore(sum);
  const SampledInterval mine = IntervalOf(lengths, count, before, target);
  const unsigned found = __ballot_sync(kWholeWarp, mine.index >= 0);
  const int last = found == 0 ? 0 : kWarp - 1 - __clz(static_cast<int>(found));
  const long long index = mine.index < 0 ? -1 : lane * static_cast<long long>(per_lane) + mine.index;
  return {__shfl_sync(kWholeWarp, index, last), __shfl_sync(kWholeWarp, mine.start, last)};
}

// A lane's logits of a chunk, which lie side by side here: the first is `first`.
struct LaneRun {
  int64_t first;
  float logits[kLogitsOfLane];

  __device__ LaneRun(const ScaledRow& row, int64_t chunk)
      : first(chunk * kSamplingChunk + threadIdx.x % kWarp * kLogitsOfLane) {
#pragma unroll
    for (int i = 0; i < kLogitsOfLane; i += 4) {
      const float4 four = LoadFour(row.logits, first + i, row.size);
      logits[i] = four.x, logits[i + 1] = four.y, logits[i + 2] = four.z, logits[i + 3] = four.w;
    }
  }
};

// The id whose interval holds `uniform` of the whole, in every lane. `Row` says what an id weighs; `sum` is that of the
// lane's weights of chunks, and `total` of all.
template <typename Row>
__device__ int32_t ChooseToken(const Row& row, const LaneChunks& mine, const double* weights, double sum,
                               double total, double uniform) {
  const double target = uniform * total;
  const SampledInterval chunk =
      WarpInterval(weights + mine.first, mine.count, mine.per_lane, sum, 0.0, target);
  const LaneRun run(row, chunk.index);
  float of_run[kLogitsOfLane];
#pragma unroll
  for (int i = 0; i < kLogitsOfLane; ++i) of_run[i] = row.Weight(run.first + i, run.logits[i]);
  const SampledInterval token =
      WarpInterval(of_run, kLogitsOfLane, kLogitsOfLane, SumOf(of_run, kLogitsOfLane), chunk.start, target);
  return static_cast<int32_t>(chunk.index * kSamplingChunk + token.index);
}

// The first id of the row's largest logit, in every lane.
__device__ inline int32_t FirstOfLargest(const ScaledRow& row, const LaneChunks& mine,
                                         const uint64_t* chunks) {
  int chunk = mine.first;
  while (chunk < mine.first + mine.count && ChunkSumOf(chunks[chunk]).largest != row.largest) ++chunk;
  unsigned found = __ballot_sync(kWholeWarp, chunk < mine.first + mine.count);
  chunk = __shfl_sync(kWholeWarp, chunk, __ffs(static_cast<int>(found)) - 1);
  const LaneRun run(row, chunk);
  int token = kLogitsOfLane;
#pragma unroll
  for (int i = kLogitsOfLane - 1; i >= 0; --i) token = run.logits[i] == row.largest ? i : token;
  found = __ballot_sync(kWholeWarp, token < kLogitsOfLane);
  return __shfl_sync(kWholeWarp, static_cast<int32_t>(run.first) + token, __ffs(static_cast<int>(found)) - 1);
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TOKEN_CHOICE_CUH_
