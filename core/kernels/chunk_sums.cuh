// The one reading of a row that every sample wants: of each chunk of kSamplingChunk ids its largest logit, and the sum
// of its weights beside that one. The row's largest logit need not be known for it, so a chunk is forgotten once
// summed, and what is drawn or kept is looked for in few chunks, which are read again.
#ifndef WARPSMITH_CORE_KERNELS_CHUNK_SUMS_CUH_
#define WARPSMITH_CORE_KERNELS_CHUNK_SUMS_CUH_

#include <cfloat>
#include <cstdint>

#include "core/kernels/hopper.cuh"
#include "core/kernels/reductions.cuh"
#include "core/kernels/scaled_row.cuh"
#include "core/kernels/token_sampling.h"

namespace warpsmith {

__host__ __device__ constexpr int ChunksOf(int64_t size) {
  return static_cast<int>((size + kSamplingChunk - 1) / kSamplingChunk);
}

// `sum` is at least 1, or 0 where all logits are -infinity; NaN where one is NaN or infinity.
struct ChunkSum {
  float largest;  // logit; NaNs are passed over
  float sum;      // of exp((logit - largest) / temperature)
};

// As one word, which a block stores in another's memory.
__device__ inline uint64_t BitsOf(ChunkSum chunk) {
  return static_cast<uint64_t>(__float_as_uint(chunk.sum)) << 32 | __float_as_uint(chunk.largest);
}
__device__ inline ChunkSum ChunkSumOf(uint64_t bits) {
  return {__uint_as_float(static_cast<unsigned>(bits)), __uint_as_float(static_cast<unsigned>(bits >> 32))};
}

// Two to the power of x, as an instruction: two units in the last place, 0 below the normal numbers.
__device__ inline float ApproximateExp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

__device__ inline uint32_t ClusterBlocks() {
  uint32_t blocks;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
  return blocks;
}

// By a warp, in every lane. `exponent_scale`: inverse temperature over ln 2, finite.
__device__ inline ChunkSum SumOfChunk(const float (&logits)[kLogitsOfLane], float exponent_scale) {
  float largest = -INFINITY;
#pragma unroll
  for (const float logit : logits) largest = fmaxf(largest, logit);
  largest = OfAscendingBits(__reduce_max_sync(kWholeWarp, AscendingBits(largest)));
  const float origin = fmaxf(largest, -FLT_MAX);  // -infinity less itself would be NaN
  float sums[4] = {};
#pragma unroll
  for (int i = 0; i < kLogitsOfLane; ++i) {
    sums[i % 4] += ApproximateExp2((logits[i] - origin) * exponent_scale);
  }
  return {largest, WarpSum((sums[0] + sums[1]) + (sums[2] + sums[3]))};
}

// Raises a word of the cluster's first block, which has begun and does not end before SyncCluster.
__device__ inline void RaiseInFirstBlock(unsigned* pointer, unsigned value) {
  asm volatile("red.relaxed.cluster.shared::cluster.max.u32 [%0], %1;" ::"r"(AddressInBlock(pointer, 0)),
               "r"(value)
               : "memory");
}

// What a cluster's reading leaves in its first block.
struct SummedChunks {
  uint64_t* chunks;   // [ChunksOf(size)] ChunkSum of each
  unsigned* largest;  // AscendingBits of the largest logit; those of -infinity at first
};

// By every thread of a cluster, whose warps take chunks in turn, the first block's last. What is left does not depend
// on which warp takes a chunk. The caller has called ArriveAtCluster; all is there after the next SyncCluster.
__device__ inline void SumChunks(const ScaledRow& row, const SummedChunks& to) {
  constexpr float kInverseLn2 = 1.44269504f;
  const float exponent_scale = fminf(row.inverse_temperature * kInverseLn2, FLT_MAX);
  const int cluster_blocks = static_cast<int>(ClusterBlocks());
  const int num_chunks = ChunksOf(row.size), step = cluster_blocks * kSamplingWarps;
  const int turn = cluster_blocks - 1 - static_cast<int>(ClusterRank());
  int chunk = turn * kSamplingWarps + static_cast<int>(threadIdx.x) / kWarp;
  float logits[kLogitsOfLane], largest = -INFINITY;
  if (chunk < num_chunks) LoadLogits(row.logits, int64_t{chunk} * kSamplingChunk, row.size, logits);
  WaitForCluster();  // the first block has begun, so it can be written to
  while (chunk < num_chunks) {
    const ChunkSum sum = SumOfChunk(logits, exponent_scale);
    largest = fmaxf(largest, sum.largest);
    if (threadIdx.x % kWarp == 0) StoreInBlock(&to.chunks[chunk], BitsOf(sum), 0);
    chunk += step;
    if (chunk < num_chunks) LoadLogits(row.logits, int64_t{chunk} * kSamplingChunk, row.size, logits);
  }
  if (threadIdx.x % kWarp == 0) RaiseInFirstBlock(to.largest, AscendingBits(largest));
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_CHUNK_SUMS_CUH_
