#include <algorithm>

#include "core/base/philox.h"
#include "core/kernels/reductions.cuh"
#include "core/kernels/scaled_row.cuh"
#include "core/kernels/token_sampling_cuda.h"
#include "core/kernels/token_truncation.cuh"

namespace warpsmith {
namespace {

constexpr int kThreads = kSamplingThreads;
constexpr int kWarpsOfBlock = kThreads / kWarp;
constexpr int kPerLane = kSamplingBlock / kWarp;
constexpr int64_t kTokenIdsMax =
    1400000;  // sums of its blocks, and what is static, fit the shared memory that every device gives
constexpr int64_t kSamplesMax = 1 << 20;

// Of a row, what truncation keeps.
struct KeptRow {
  ScaledRow row;
  Kept kept;

  __device__ float Weight(int64_t i) const {
    const float weight = row.Weight(i);
    if (weight == 0 || weight < kept.weight_min) return 0.0f;
    return OrderKeyOf(row.logits[i], i) < kept.key_min ? 0.0f : weight;
  }
};

__device__ LargestLogit WarpLargest(LargestLogit largest) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const LargestLogit other = {__shfl_xor_sync(kWholeWarp, largest.value, offset),
                                __shfl_xor_sync(kWholeWarp, largest.token_id, offset)};
    largest = LargerOf(largest, other);
  }
  return largest;
}

// Of a row, in every thread; NaNs are passed over. `of_thread` becomes the largest of this thread; `of_warps` holds one
// a warp, in shared memory.
__device__ LargestLogit BlockLargest(const float* logits, int64_t size, LargestLogit* of_warps,
                                     float* of_thread) {
  LargestLogit largest = {-INFINITY, 0};
  for (int64_t i = threadIdx.x; i < size; i += kThreads) {
    largest = LargerOf(largest, {logits[i], static_cast<int32_t>(i)});
  }
  *of_thread = largest.value;
  largest = WarpLargest(largest);
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = largest;
  __syncthreads();
  for (int warp = 0; warp < kWarpsOfBlock; ++warp) largest = LargerOf(largest, of_warps[warp]);
  return largest;
}

// block_sums[b] = the weights of block b, a warp a block.
template <typename Row>
__device__ void SumBlocks(const Row& row, int num_blocks, double* block_sums) {
  const int lane = threadIdx.x % kWarp;
  for (int block = threadIdx.x / kWarp; block < num_blocks; block += kWarpsOfBlock) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) sum += row.Weight(int64_t{block} * kSamplingBlock + i * kWarp + lane);
    const double total = WarpSum(static_cast<double>(sum));
    if (lane == 0) block_sums[block] = total;
  }
}

// The sum of the lanes before this one.
__device__ double SumBefore(double value) {
  const int lane = threadIdx.x % kWarp;
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

// The last interval of all lanes, in every lane. A lane's `lengths` follow those of the lane before, `per_lane` each;
// the first lane's start at `start`. Index -1 where none has a length.
template <typename Length>
__device__ SampledInterval WarpInterval(const Length* lengths, int count, int per_lane, double start,
                                        double target) {
  const int lane = threadIdx.x % kWarp;
  const double before = start + SumBefore(SumOf(lengths, count));
  const SampledInterval mine = IntervalOf(lengths, count, before, target);
  const unsigned found = __ballot_sync(kWholeWarp, mine.index >= 0);
  const int last = found == 0 ? 0 : kWarp - 1 - __clz(static_cast<int>(found));
  const long long index = mine.index < 0 ? -1 : lane * static_cast<long long>(per_lane) + mine.index;
  return {__shfl_sync(kWholeWarp, index, last), __shfl_sync(kWholeWarp, mine.start, last)};
}

// By one warp, from the sums of all blocks: first the block, then the id in it.
template <typename Row>
__device__ int32_t ChooseToken(const Row& row, int num_blocks, const double* block_sums, double target) {
  const int lane = threadIdx.x % kWarp;
  const int per_lane = (num_blocks + kWarp - 1) / kWarp;
  const int first = min(lane * per_lane, num_blocks);
  const int count = min(per_lane, num_blocks - first);
  const SampledInterval block = WarpInterval(block_sums + first, count, per_lane, 0.0, target);
  float weights[kPerLane];
  const int64_t begin = block.index * kSamplingBlock + lane * kPerLane;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) weights[i] = row.Weight(begin + i);
  const SampledInterval token = WarpInterval(weights, kPerLane, kPerLane, block.start, target);
  return static_cast<int32_t>(block.index * kSamplingBlock + token.index);
}

__device__ void Write(const TokenSamples& samples, int64_t sample, int32_t token, float log_prob) {
  samples.token_ids[sample] = token;
  samples.log_probs[sample] = log_prob;
  samples.last_tokens[samples.slots[sample]] = token;
}

// By each warp, with the same bits.
__device__ double TotalOf(int num_blocks, const double* block_sums) {
  double total = 0.0;
  for (int block = threadIdx.x % kWarp; block < num_blocks; block += kWarp) total += block_sums[block];
  return WarpSum(total);
}

__device__ Truncation TruncationOf(const TokenSamples& samples, int64_t sample) {
  Truncation truncation = {0, 1, 0};
  if (samples.top_ks != nullptr) truncation.top_k = samples.top_ks[sample];
  if (samples.top_ps != nullptr) truncation.top_p = samples.top_ps[sample];
  if (samples.min_ps != nullptr) truncation.min_p = samples.min_ps[sample];
  if (truncation.top_k >= samples.num_token_ids) truncation.top_k = 0;
  return truncation;
}

// By the whole block; the token in the first warp. `block_sums` holds what is collected meanwhile.
__device__ int32_t ChooseTruncated(const ScaledRow& row, const Truncation& truncation, double total,
                                   double uniform, float largest_of_thread, int num_blocks,
                                   double* block_sums) {
  __shared__ Mass sums[kPivots * kWarpsOfBlock];
  __shared__ int number;
  __shared__ float floor;
  __syncthreads();  // all have read block_sums
  const Kept kept = Truncate(row, truncation, total, uniform, largest_of_thread,
                             {reinterpret_cast<OrderKey*>(block_sums), sums, &number, &floor});
  if (kept.token_id >= 0) return kept.token_id;
  __syncthreads();  // all have read what was collected
  const KeptRow kept_row = {row, kept};
  SumBlocks(kept_row, num_blocks, block_sums);
  __syncthreads();
  if (threadIdx.x >= kWarp) return kNoToken;
  return ChooseToken(kept_row, num_blocks, block_sums, uniform * TotalOf(num_blocks, block_sums));
}

// A block a sample.
template <bool kTruncates>
__global__ void __launch_bounds__(kThreads, 2) TokenSamplesKernel(const TokenSamples samples) {
  extern __shared__ double block_sums[];
  __shared__ LargestLogit of_warps[kWarpsOfBlock];
  const int64_t sample = blockIdx.x;
  const float* const logits = samples.logits + samples.logits_rows[sample] * samples.logits_stride;
  float largest_of_thread;
  const LargestLogit largest = BlockLargest(logits, samples.num_token_ids, of_warps, &largest_of_thread);
  const bool greedy = samples.temperatures[sample] == 0.0f;
  const float inverse = greedy ? 1.0f : 1.0f / samples.temperatures[sample];
  const ScaledRow row = {logits, samples.num_token_ids, inverse, largest.value};
  const int num_blocks = static_cast<int>((samples.num_token_ids + kSamplingBlock - 1) / kSamplingBlock);
  SumBlocks(row, num_blocks, block_sums);
  __syncthreads();

  const double total = TotalOf(num_blocks, block_sums);
  const bool drawn = isfinite(largest.value) && isfinite(total);
  int32_t token = drawn ? largest.token_id : kNoToken;
  if (drawn && !greedy) {
    const double uniform = PhiloxUniform(samples.seeds[sample], samples.draws[sample]);
    const Truncation truncation = TruncationOf(samples, sample);
    if (kTruncates && !truncation.IsOff()) {
      token = ChooseTruncated(row, truncation, total, uniform, largest_of_thread, num_blocks, block_sums);
    } else if (threadIdx.x < kWarp) {
      token = ChooseToken(row, num_blocks, block_sums, uniform * total);
    }
  }
  if (threadIdx.x != 0) return;
  Write(samples, sample, token, drawn ? row.Shifted(logits[token]) - static_cast<float>(log(total)) : NAN);
}

}  // namespace

cudaError_t LaunchTokenSamples(const TokenSamples& samples, cudaStream_t stream) {
  if (samples.num_token_ids < 1 || samples.num_token_ids > kTokenIdsMax) return cudaErrorInvalidValue;
  if (samples.num_samples < 0 || samples.num_samples > kSamplesMax) return cudaErrorInvalidValue;
  if (samples.num_samples == 0) return cudaSuccess;
  const int64_t num_blocks = (samples.num_token_ids + kSamplingBlock - 1) / kSamplingBlock;
  const auto blocks = static_cast<unsigned>(samples.num_samples);
  const size_t shared_bytes = static_cast<size_t>(num_blocks) * sizeof(double);
  if (samples.top_ks == nullptr && samples.top_ps == nullptr && samples.min_ps == nullptr) {
    TokenSamplesKernel<false><<<blocks, kThreads, shared_bytes, stream>>>(samples);
  } else {
    TokenSamplesKernel<true>
        <<<blocks, kThreads, std::max(shared_bytes, kCollectedMax * sizeof(OrderKey)), stream>>>(samples);
  }
  return cudaGetLastError();
}

}  // namespace warpsmith
