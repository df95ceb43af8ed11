// The splits of a row's query head become one softmax: by a warp, in their order, whichever block left the sums.
#ifndef WARPSMITH_CORE_KERNELS_ATTENTION_MERGE_CUH_
#define WARPSMITH_CORE_KERNELS_ATTENTION_MERGE_CUH_

#include <cstdint>

#include "core/kernels/attention_tile.cuh"
#include "core/kernels/stored_pair.cuh"

namespace warpsmith {

// A lane's columns of a head, in one load.
template <int kHeadDim>
struct alignas(kHeadDim / kWarp * sizeof(float)) LaneColumns {
  float values[kHeadDim / kWarp];
};

// What another block wrote, which may lie otherwise in the first cache.
__device__ inline LaneColumns<128> LoadPastFirstCache(const LaneColumns<128>* from) {
  const float4 four = __ldcg(reinterpret_cast<const float4*>(from));
  return {{four.x, four.y, four.z, four.w}};
}
__device__ inline LaneColumns<64> LoadPastFirstCache(const LaneColumns<64>* from) {
  const float2 two = __ldcg(reinterpret_cast<const float2*>(from));
  return {{two.x, two.y}};
}

// `scale_of(split)`: float2 of its largest score and sum of weights; `part_of(split)`: LaneColumns of its sums of
// values. Writes the lane's columns of `output`, [kHeadDim].
template <int kHeadDim, typename ScaleOf, typename PartOf, typename T>
__device__ void MergeSplits(float scale_log2, int num_splits, ScaleOf scale_of, PartOf part_of, T* output) {
  constexpr int kPerLane = kHeadDim / kWarp;
  constexpr int kAtOnce = 8;  // loads under way
  float largest, sum;
  LaneColumns<kHeadDim> merged;
  for (int first = 0; first < num_splits; first += kAtOnce) {
    float2 scales[kAtOnce];
    LaneColumns<kHeadDim> parts[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i >= num_splits) continue;
      scales[i] = scale_of(first + i);
      parts[i] = part_of(first + i);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i >= num_splits) continue;
      if (first + i == 0) {
        largest = scales[i].x, sum = scales[i].y, merged = parts[i];
        continue;
      }
      const SoftmaxMerge merge = MergeLargest(scale_log2, scales[i].x, largest);
      sum = Merged(merge, sum, scales[i].y);
#pragma unroll
      for (int j = 0; j < kPerLane; ++j) {
        merged.values[j] = Merged(merge, merged.values[j], parts[i].values[j]);
      }
    }
  }
  const float inverse = InverseOfSum(sum);
  T* const to = output + threadIdx.x % kWarp * kPerLane;
#pragma unroll
  for (int i = 0; i < kPerLane; i += 2) {
    *reinterpret_cast<uint32_t*>(to + i) =
        NarrowedPair<T>(__fmul_rn(merged.values[i], inverse), __fmul_rn(merged.values[i + 1], inverse));
  }
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ATTENTION_MERGE_CUH_
