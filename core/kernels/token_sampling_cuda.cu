#include <algorithm>

#include "core/base/philox.h"
#include "core/kernels/hopper.cuh"
#include "core/kernels/kernel_start.cuh"
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
struct KeptRow : ScaledRow {
  Kept kept;

  __device__ float Weight(int64_t i, float logit) const {
    const float weight = WeightOf(logit);
    if (weight == 0 || weight < kept.weight_min) return 0.0f;
    return OrderKeyOf(logit, i) < kept.key_min ? 0.0f : weight;
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

// Of the block's warps, in every thread. `of_warps` is shared memory.
__device__ LargestLogit LargestOfWarps(LargestLogit largest, LargestLogit* of_warps) {
  largest = WarpLargest(largest);
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = largest;
  __syncthreads();
  for (int warp = 0; warp < kWarpsOfBlock; ++warp) largest = LargerOf(largest, of_warps[warp]);
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
  return LargestOfWarps(largest, of_warps);
}

// The weights of a block of ids, in every lane; `logits` are this lane's.
template <typename Row>
__device__ double SumOfBlock(const Row& row, int64_t first, const float (&logits)[kLogitsOfLane]) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kLogitsOfLane; ++i) sum += row.Weight(IdOfLane(first, i), logits[i]);
  return WarpSum(static_cast<double>(sum));
}

// block_sums[b] = the weights of block b, a warp a block.
template <typename Row>
__device__ void SumBlocks(const Row& row, int num_blocks, double* block_sums) {
  const int lane = threadIdx.x % kWarp;
  for (int block = threadIdx.x / kWarp; block < num_blocks; block += kWarpsOfBlock) {
    float logits[kLogitsOfLane];
    const int64_t first = int64_t{block} * kSamplingBlock;
    LoadLogits(row.logits, first, row.size, logits);
    const double sum = SumOfBlock(row, first, logits);
    if (lane == 0) block_sums[block] = sum;
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
  for (int i = 0; i < kPerLane; ++i) {
    weights[i] = begin + i < row.size ? row.Weight(begin + i, row.logits[begin + i]) : 0.0f;
  }
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

// A sample's row, of which `largest` is known.
__device__ ScaledRow RowOf(const TokenSamples& samples, int64_t sample, float largest) {
  const float temperature = samples.temperatures[sample];
  return {samples.logits + samples.logits_rows[sample] * samples.logits_stride, samples.num_token_ids,
          temperature == 0.0f ? 1.0f : 1.0f / temperature, largest};
}

// Where nothing truncates, a sample has a cluster of kClusterBlocks blocks, which hold its logits in registers between
// the two passes: each warp of the cluster has blocks of ids by turns, at most kTurns.
constexpr int kClusterBlocks = 8;
constexpr int kTurns = 5;
constexpr int64_t kClusterIdsMax = int64_t{kTurns} * kClusterBlocks * kWarpsOfBlock * kSamplingBlock;

struct ClusterMemory {
  LargestLogit of_warps[kWarpsOfBlock];
  uint64_t of_blocks[kClusterBlocks];                      // LargestLogit of each block
  uint64_t sums[kTurns * kClusterBlocks * kWarpsOfBlock];  // doubles; of the first block of the cluster
};

__device__ uint64_t BitsOf(LargestLogit largest) {
  return static_cast<uint64_t>(static_cast<uint32_t>(largest.token_id)) << 32 |
         __float_as_uint(largest.value);
}
__device__ LargestLogit LargestOf(uint64_t bits) {
  return {__uint_as_float(static_cast<uint32_t>(bits)), static_cast<int32_t>(bits >> 32)};
}

// In every thread of the cluster, whose blocks have all begun.
__device__ LargestLogit ClusterLargest(LargestLogit largest, uint32_t rank, ClusterMemory& memory) {
  largest = LargestOfWarps(largest, memory.of_warps);
  if (threadIdx.x < kClusterBlocks) StoreInBlock(&memory.of_blocks[rank], BitsOf(largest), threadIdx.x);
  SyncCluster();
  for (const uint64_t bits : memory.of_blocks) largest = LargerOf(largest, LargestOf(bits));
  return largest;
}

__global__ void __launch_bounds__(kThreads, 2) ClusterSamplesKernel(const TokenSamples samples) {
  __shared__ ClusterMemory memory;
  LetNextStart();
  ArriveAtCluster();
  WaitForFormer();
  const int64_t sample = blockIdx.x / kClusterBlocks;
  const uint32_t rank = ClusterRank();
  const int num_blocks = static_cast<int>((samples.num_token_ids + kSamplingBlock - 1) / kSamplingBlock);
  const int first_block = static_cast<int>(rank) * kWarpsOfBlock + static_cast<int>(threadIdx.x) / kWarp;
  const auto block_of_turn = [&](int turn) { return first_block + turn * kClusterBlocks * kWarpsOfBlock; };
  ScaledRow row = RowOf(samples, sample, 0.0f);
  float logits[kTurns][kLogitsOfLane];
  LargestLogit largest = {-INFINITY, 0};
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    LoadLogits(row.logits, int64_t{block_of_turn(turn)} * kSamplingBlock, row.size, logits[turn]);
  }
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma unroll
    for (int i = 0; i < kLogitsOfLane; ++i) {
      const int64_t id = IdOfLane(int64_t{block_of_turn(turn)} * kSamplingBlock, i);
      largest = LargerOf(largest, {logits[turn][i], static_cast<int32_t>(id)});
    }
  }
  WaitForCluster();
  largest = ClusterLargest(largest, rank, memory);
  row.largest = largest.value;
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int block = block_of_turn(turn);
    if (block >= num_blocks) continue;
    const double sum = SumOfBlock(row, int64_t{block} * kSamplingBlock, logits[turn]);
    if (threadIdx.x % kWarp == 0) {
      StoreInBlock(&memory.sums[block], static_cast<uint64_t>(__double_as_longlong(sum)), 0);
    }
  }
  SyncCluster();
  if (rank > 0 || threadIdx.x >= kWarp) return;

  const auto* const block_sums = reinterpret_cast<const double*>(memory.sums);
  const double total = TotalOf(num_blocks, block_sums);
  const bool drawn = isfinite(largest.value) && isfinite(total);
  int32_t token = drawn ? largest.token_id : kNoToken;
  if (drawn && samples.temperatures[sample] != 0.0f) {
    const double uniform = PhiloxUniform(samples.seeds[sample], samples.draws[sample]);
    token = ChooseToken(row, num_blocks, block_sums, uniform * total);
  }
  if (threadIdx.x != 0) return;
  Write(samples, sample, token,
        drawn ? row.Shifted(row.logits[token]) - static_cast<float>(log(total)) : NAN);
}

// A block a sample.
template <bool kTruncates>
__global__ void __launch_bounds__(kThreads, 2) TokenSamplesKernel(const TokenSamples samples) {
  extern __shared__ double block_sums[];
  __shared__ LargestLogit of_warps[kWarpsOfBlock];
  LetNextStart();
  WaitForFormer();
  const int64_t sample = blockIdx.x;
  const float* const logits = samples.logits + samples.logits_rows[sample] * samples.logits_stride;
  float largest_of_thread;
  const LargestLogit largest = BlockLargest(logits, samples.num_token_ids, of_warps, &largest_of_thread);
  const bool greedy = samples.temperatures[sample] == 0.0f;
  const ScaledRow row = RowOf(samples, sample, largest.value);
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

cudaError_t LaunchClusters(const TokenSamples& samples, cudaStream_t stream, KernelStart start) {
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {kClusterBlocks, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(samples.num_samples * kClusterBlocks));
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = start == KernelStart::kBesideFormer ? 2 : 1;
  return cudaLaunchKernelEx(&config, ClusterSamplesKernel, samples);
}

}  // namespace

cudaError_t LaunchTokenSamples(const TokenSamples& samples, cudaStream_t stream, KernelStart start) {
  if (samples.num_token_ids < 1 || samples.num_token_ids > kTokenIdsMax) return cudaErrorInvalidValue;
  if (samples.num_samples < 0 || samples.num_samples > kSamplesMax) return cudaErrorInvalidValue;
  if (samples.num_samples == 0) return cudaSuccess;
  const int64_t num_blocks = (samples.num_token_ids + kSamplingBlock - 1) / kSamplingBlock;
  const auto blocks = static_cast<unsigned>(samples.num_samples);
  const size_t shared_bytes = static_cast<size_t>(num_blocks) * sizeof(double);
  if (samples.top_ks != nullptr || samples.top_ps != nullptr || samples.min_ps != nullptr) {
    return StartKernel(start, TokenSamplesKernel<true>, blocks, kThreads,
                       std::max(shared_bytes, kCollectedMax * sizeof(OrderKey)), stream, samples);
  }
  if (samples.num_token_ids <= kClusterIdsMax) return LaunchClusters(samples, stream, start);
  return StartKernel(start, TokenSamplesKernel<false>, blocks, kThreads, shared_bytes, stream, samples);
}

}  // namespace warpsmith
