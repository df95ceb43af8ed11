#include "core/kernels/scaled_row.cuh"
#include "core/kernels/token_truncation.cuh"
#include "core/kernels/top_tokens_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreads = kSamplingThreads;
constexpr int64_t kTokenIdsMax = 1000000;
constexpr int64_t kSamplesMax = 1 << 20;

// One sample's row, and what its tokens' log-probs are counted from.
struct TopRow {
  const float* logits;
  int size;
  int32_t drawn;
  float log_prob;
  float drawn_logit;
  float inverse_temperature;
  TokenLogProb* tops;

  __device__ void Write(int rank, OrderKey key) const {
    const int32_t id = IdOf(key);
    const float shift = (LogitOf(key) - drawn_logit) * inverse_temperature;
    tops[rank] = {id, id == drawn ? log_prob : log_prob + shift};
  }
};

// By the whole block: the largest logit of a thread's ids, every 512th.
__device__ float LargestOfThread(const TopRow& row) {
  float largest = -INFINITY;
  for (int i = static_cast<int>(threadIdx.x); i < row.size; i += kThreads)
    largest = fmaxf(largest, row.logits[i]);
  return largest;
}

// By the whole block: how many ids have at least `floor`; the keys of the first kThreads are collected, in any order.
__device__ int CollectFrom(const TopRow& row, float floor, OrderKey* collected, int* number) {
  if (threadIdx.x == 0) *number = 0;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < row.size; i += kThreads) {
    const float logit = row.logits[i];
    if (!(logit >= floor)) continue;
    const int at = atomicAdd(number, 1);
    if (at < kThreads) collected[at] = OrderKeyOf(logit, i);
  }
  __syncthreads();
  return *number;
}

// By the whole block, in every thread: the largest key of the row below `limit`. `largest` holds one a warp.
__device__ OrderKey LargestBelow(const TopRow& row, OrderKey limit, OrderKey* largest) {
  OrderKey found = 0;
  for (int i = static_cast<int>(threadIdx.x); i < row.size; i += kThreads) {
    const OrderKey key = OrderKeyOf(row.logits[i], i);
    if (key < limit && key > found) found = key;
  }
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    found = max(found, __shfl_xor_sync(kWholeWarp, found, offset));
  if (threadIdx.x % kWarp == 0) largest[threadIdx.x / kWarp] = found;
  __syncthreads();
  for (int warp = 0; warp < kSamplingWarps; ++warp) found = max(found, largest[warp]);
  __syncthreads();  // before the next call writes
  return found;
}

__global__ void __launch_bounds__(kThreads) TopTokensKernel(const TopTokens top) {
  __shared__ OrderKey collected[kThreads];
  __shared__ int number;
  const int64_t sample = blockIdx.x;
  const int count = top.counts[sample];
  const int32_t drawn = top.token_ids[sample];
  if (count == 0 || drawn < 0) return;
  const float* const logits = top.logits + top.logits_rows[sample] * top.logits_stride;
  const TopRow row = {logits,
                      static_cast<int>(top.num_token_ids),
                      drawn,
                      top.log_probs[sample],
                      logits[drawn],
                      InverseOf(top.temperatures[sample]),
                      top.tops + sample * kTopTokensMax};
  // At least `count` ids have this logit: the largest ones of as many threads.
  const float floor = FloorOfThreads(LargestOfThread(row), count);
  const int found = CollectFrom(row, floor, collected, &number);
  if (found <= kThreads) {
    const OrderKey key = static_cast<int>(threadIdx.x) < found ? collected[threadIdx.x] : 0;
    int rank = 0;
    for (int i = 0; i < found; ++i) rank += collected[i] > key;
    if (key != 0 && rank < count) row.Write(rank, key);
    return;
  }
  OrderKey limit = ~OrderKey{0};
  for (int rank = 0; rank < count; ++rank) {
    limit = LargestBelow(row, limit, collected);
    if (threadIdx.x == 0) row.Write(rank, limit);
  }
}

}  // namespace

cudaError_t LaunchTopTokens(const TopTokens& top, cudaStream_t stream) {
  if (top.num_token_ids < 1 || top.num_token_ids > kTokenIdsMax) return cudaErrorInvalidValue;
  if (top.num_samples < 0 || top.num_samples > kSamplesMax) return cudaErrorInvalidValue;
  if (top.num_samples == 0) return cudaSuccess;
  TopTokensKernel<<<static_cast<unsigned>(top.num_samples), kThreads, 0, stream>>>(top);
  return cudaGetLastError();
}

}  // namespace warpsmith
