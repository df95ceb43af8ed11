// Top-k, top-p and min-p without sorting a row.
//
// Ids stand in one order: descending logits, of equal ones ascending ids. Each of the three keeps the first ids of it,
// so all three do; whether an id is kept or drawn follows from what comes before it. Weights are summed
// as whole numbers of 2^-42, so that no order of adding changes a sum.
//
// First the ids that can be kept at all are collected, from the chunks whose largest logit may be. Usually they are so
// few that each thread takes one and adds up what comes before it; otherwise the edges are searched for.
#ifndef WARPSMITH_CORE_KERNELS_TOKEN_TRUNCATION_CUH_
#define WARPSMITH_CORE_KERNELS_TOKEN_TRUNCATION_CUH_

#include <cstdint>

#include "core/kernels/chunk_sums.cuh"
#include "core/kernels/reductions.cuh"
#include "core/kernels/scaled_row.cuh"

namespace warpsmith {

using Mass = unsigned long long;
inline constexpr float kMassOfOne = 0x1p42f;  // 1,500,000 of them fit

inline constexpr int kCollectedMax = 4096;
inline constexpr int kPivots = 4;

struct Truncation {
  int64_t top_k;  // 0: off
  double top_p;   // 1: off
  double min_p;   // 0: off

  __device__ bool IsOff() const { return top_k == 0 && top_p >= 1 && min_p <= 0; }
};

// Memory of a block that truncates.
struct TruncationScratch {
  OrderKey* collected;  // [kCollectedMax]
  Mass* sums;           // [kPivots][warps]
  int* number;
};

__device__ inline Mass MassOf(float weight) { return static_cast<Mass>(weight * kMassOfOne); }

// Where a uniform number in [0, 1) falls in `total`, which is not 0.
__device__ inline Mass TargetIn(Mass total, double uniform) {
  return min(static_cast<Mass>(uniform * static_cast<double>(total)), total - 1);
}

// The row as its one reading has left it.
struct SummedRow : ScaledRow {
  const uint64_t* chunks;  // ChunkSum of each
  double total;            // the weights of all ids
};

// By the whole block: the k-th largest of the threads' values, or a smaller one that more than k have.
__device__ inline float FloorOfThreads(float value, int64_t k) {
  const unsigned bits = AscendingBits(value);
  unsigned floor = 0;  // all have it
  for (unsigned bit = 1u << 31; bit != 0; bit >>= 1) {
    const int having = __syncthreads_count(bits >= (floor | bit));
    if (having >= k) floor |= bit;
    if (having == k) break;
  }
  return OfAscendingBits(max(floor, AscendingBits(-INFINITY)));  // bits below are of NaNs
}

// A logit that k ids have at least: the k-th of the largest ones of the threads' chunks, or, where k is more, of the
// threads' ids; else -infinity.
__device__ inline float FloorOfTopK(const SummedRow& row, int64_t top_k) {
  const int num_chunks = ChunksOf(row.size);
  if (top_k > kSamplingThreads) return -INFINITY;
  float largest = -INFINITY;
  if (top_k <= num_chunks) {
    for (int i = static_cast<int>(threadIdx.x); i < num_chunks; i += kSamplingThreads) {
      largest = fmaxf(largest, ChunkSumOf(row.chunks[i]).largest);
    }
  } else {
    for (int64_t i = threadIdx.x; i < row.size; i += kSamplingThreads)
      largest = fmaxf(largest, row.logits[i]);
  }
  return FloorOfThreads(largest, top_k);
}

// Collects the keys of ids with at least this logit and weight, in any order. Returns how many there are; only
// kCollectedMax of them are in the list.
__device__ inline int Collect(const SummedRow& row, float logit_min, float weight_min,
                              const TruncationScratch& scratch) {
  const auto is_wanted = [&](float logit) { return logit >= logit_min && row.WeightOf(logit) >= weight_min; };
  if (threadIdx.x == 0) *scratch.number = 0;
  __syncthreads();
  const int num_chunks = ChunksOf(row.size);
#pragma unroll 1
  for (int chunk = static_cast<int>(threadIdx.x) / kWarp; chunk < num_chunks; chunk += kSamplingWarps) {
    if (!is_wanted(ChunkSumOf(row.chunks[chunk]).largest)) continue;
    const int64_t first = int64_t{chunk} * kSamplingChunk;
    float logits[kLogitsOfLane];
    LoadLogits(row.logits, first, row.size, logits);
#pragma unroll
    for (int i = 0; i < kLogitsOfLane; ++i) {
      const int64_t id = IdOfLane(first, i);
      if (id >= row.size || !is_wanted(logits[i])) continue;
      const int at = atomicAdd(scratch.number, 1);
      if (at < kCollectedMax) scratch.collected[at] = OrderKeyOf(logits[i], id);
    }
  }
  __syncthreads();
  return *scratch.number;
}

// Draws from at most a thread's number of collected ids.
__device__ inline int32_t DrawFromFew(const SummedRow& row, const Truncation& truncation, double uniform,
                                      int number, const TruncationScratch& scratch) {
  Mass* const masses = scratch.collected + kSamplingThreads;
  const int me = static_cast<int>(threadIdx.x);
  const OrderKey key = me < number ? scratch.collected[me] : 0;
  const float weight = me < number ? row.WeightOf(LogitOf(key)) : 0.0f;
  const Mass mass = MassOf(weight);
  masses[me] = mass;
  __syncthreads();
  Mass before = 0;
  int larger_logits = 0;
  for (int i = 0; i < number; ++i) {
    const OrderKey other = scratch.collected[i];
    before += other > key ? masses[i] : 0;
    larger_logits += other >> 32 > key >> 32;
  }
  bool kept = me < number && (truncation.top_k == 0 || larger_logits < truncation.top_k);
  if (truncation.top_p < 1) {
    const Mass of_top_k = BlockSum<kSamplingThreads>(kept ? mass : 0, scratch.sums);
    const double whole = truncation.top_k > 0 ? static_cast<double>(of_top_k) : row.total * kMassOfOne;
    kept = kept && (before == 0 || static_cast<double>(before) < truncation.top_p * whole);
  }
  kept = kept && weight >= truncation.min_p;
  const Mass target = TargetIn(BlockSum<kSamplingThreads>(kept ? mass : 0, scratch.sums), uniform);
  masses[me] = kept ? mass : 0;
  __syncthreads();
  before = 0;
  for (int i = 0; i < number; ++i) {
    const OrderKey other = scratch.collected[i];
    before += (truncation.top_p < 1 ? other > key : IdOf(other) < IdOf(key)) ? masses[i] : 0;
  }
  if (kept && before <= target && target < before + mass) *scratch.number = IdOf(key);
  __syncthreads();
  return *scratch.number;
}

// Calls body(key, weight) for the ids of a thread: of the row, or of the collected ones where they are all.
struct OrderedIds {
  ScaledRow row;
  const OrderKey* collected;  // null: of the row
  int number;

  template <typename Body>
  __device__ void ForEach(Body body) const {
    if (collected != nullptr) {
      for (int i = threadIdx.x; i < number; i += kSamplingThreads) {
        body(collected[i], row.WeightOf(LogitOf(collected[i])));
      }
      return;
    }
    for (int64_t i = threadIdx.x; i < row.size; i += kSamplingThreads) {
      body(OrderKeyOf(row.logits[i], i), row.WeightOf(row.logits[i]));
    }
  }
};

// The last key, in descending order, that has at most `target` before it; `measure` says what an id's weight counts.
// All keys are at most `high`; those below `low` do not matter.
template <typename Measure>
__device__ OrderKey LastKeyWithin(const OrderedIds& ids, OrderKey low, OrderKey high, Mass target, Mass* sums,
                                  Measure measure) {
  constexpr int kWarps = kSamplingThreads / kWarp;
  while (low < high) {  // each round leaves about a quarter
    const OrderKey step = max(OrderKey{1}, (high - low) / kPivots);
    OrderKey pivots[kPivots];
    Mass before[kPivots];
#pragma unroll
    for (int i = 0; i < kPivots; ++i) {
      pivots[i] = min(low + step * i, high - 1);
      before[i] = 0;
    }
    ids.ForEach([&](OrderKey key, float weight) {
      const Mass own = measure(weight);
#pragma unroll
      for (int i = 0; i < kPivots; ++i) before[i] += key > pivots[i] ? own : 0;
    });
#pragma unroll
    for (int i = 0; i < kPivots; ++i) {
      before[i] = WarpSum(before[i]);
      if (threadIdx.x % kWarp == 0) sums[i * kWarps + threadIdx.x / kWarp] = before[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kPivots; ++i) {
      Mass sum = 0;
      for (int warp = 0; warp < kWarps; ++warp) sum += sums[i * kWarps + warp];
      if (sum <= target) {
        high = min(high, pivots[i]);
      } else {
        low = max(low, pivots[i] + 1);
      }
    }
    __syncthreads();  // before sums are written again
  }
  return high;
}

// What is kept of a row: the ids with at least this key and this weight. `token_id`: the one drawn, or -1 where it is
// still to be drawn in the order of ids.
struct Kept {
  OrderKey key_min;
  double weight_min;
  int32_t token_id;
};

__device__ inline Kept DrawFromMany(const OrderedIds& ids, const Truncation& truncation, double total,
                                    double uniform, Mass* sums) {
  const auto mass_of = [](float weight) { return MassOf(weight); };
  const OrderKey highest = OrderKeyOf(ids.row.largest, 0);
  // Below this logit ids weigh nothing.
  OrderKey lowest = OrderKeyOf(ids.row.largest + (kExponentMin - 1) / ids.row.inverse_temperature, INT32_MAX);
  const auto sum_of_kept = [&](double weight_min) {
    Mass sum = 0;
    ids.ForEach([&](OrderKey key, float weight) {
      sum += key >= lowest && weight >= weight_min ? MassOf(weight) : 0;
    });
    return BlockSum<kSamplingThreads>(sum, sums);
  };
  if (truncation.top_k > 0) {
    const OrderKey kth = LastKeyWithin(ids, lowest, highest, static_cast<Mass>(truncation.top_k - 1), sums,
                                       [](float) { return Mass{1}; });
    lowest = max(lowest, kth >> 32 << 32);  // with all ids of this logit
  }
  if (truncation.top_p < 1) {
    const double whole = truncation.top_k > 0 ? static_cast<double>(sum_of_kept(0)) : total * kMassOfOne;
    const double edge = ceil(truncation.top_p * whole) - 1;  // before it: less than top_p of the whole
    lowest = LastKeyWithin(ids, lowest, highest, static_cast<Mass>(max(edge, 0.0)), sums, mass_of);
  }
  Kept kept = {lowest, truncation.min_p, -1};
  if (truncation.top_p >= 1) return kept;
  const Mass target = TargetIn(sum_of_kept(truncation.min_p), uniform);
  kept.token_id = IdOf(LastKeyWithin(ids, lowest, highest, target, sums, mass_of));
  return kept;
}

// By the whole block.
__device__ inline Kept Truncate(const SummedRow& row, const Truncation& truncation, double uniform,
                                const TruncationScratch& scratch) {
  float logit_min = -INFINITY, weight_min = 0.0f;
  if (truncation.top_k > 0) {
    logit_min = FloorOfTopK(row, truncation.top_k);
  } else {
    // All that weigh less than an equal share of 1 - top_p weigh less than that together, so they come after the edge.
    const double share = (1 - truncation.top_p) * row.total / static_cast<double>(row.size);
    weight_min =
        static_cast<float>(0.999 * fmax(truncation.min_p, share));  // the edges themselves come later
  }
  const int number = Collect(row, logit_min, weight_min, scratch);
  if (number <= kSamplingThreads) {
    return {0, 0, DrawFromFew(row, truncation, uniform, number, scratch)};
  }
  const OrderedIds ids = {row, number <= kCollectedMax ? scratch.collected : nullptr, number};
  return DrawFromMany(ids, truncation, row.total, uniform, scratch.sums);
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TOKEN_TRUNCATION_CUH_
