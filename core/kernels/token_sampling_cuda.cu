#include "core/base/philox.h"
#include "core/kernels/chunk_sums.cuh"
#include "core/kernels/hopper.cuh"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/multiprocessors.h"
#include "core/kernels/reductions.cuh"
#include "core/kernels/scaled_row.cuh"
#include "core/kernels/token_choice.cuh"
#include "core/kernels/token_sampling_cuda.h"
#include "core/kernels/token_truncation.cuh"

namespace warpsmith {
namespace {

constexpr int kThreads = kSamplingThreads;
constexpr unsigned kClusterBlocksMin = 2, kClusterBlocksMax = 8;  // every device takes clusters of 8
constexpr int64_t kTokenIdsMax = 1000000;  // their chunks fit the shared memory that every device gives
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

// Shared memory of a cluster's first block: the sums of chunks, then their weights, or what truncation collects.
__host__ __device__ constexpr size_t SharedBytes(int num_chunks) {
  const size_t of_chunks = static_cast<size_t>(num_chunks) * sizeof(double);
  constexpr size_t kCollectedBytes = kCollectedMax * sizeof(OrderKey);
  return of_chunks + (of_chunks < kCollectedBytes ? kCollectedBytes : of_chunks);
}

// How a sample is drawn from its row, and where its token goes.
struct DrawRule {
  Truncation truncation;
  double uniform;
  int32_t slot;
  bool is_greedy;

  __device__ bool Truncates() const { return !is_greedy && !truncation.IsOff(); }
};

__device__ DrawRule RuleOf(const TokenSamples& samples, int64_t sample) {
  DrawRule rule = {{0, 1, 0},
                   PhiloxUniform(samples.seeds[sample], samples.draws[sample]),
                   samples.slots[sample],
                   samples.temperatures[sample] == 0.0f};
  if (samples.top_ks != nullptr) rule.truncation.top_k = samples.top_ks[sample];
  if (samples.top_ps != nullptr) rule.truncation.top_p = samples.top_ps[sample];
  if (samples.min_ps != nullptr) rule.truncation.min_p = samples.min_ps[sample];
  if (rule.truncation.top_k >= samples.num_token_ids) rule.truncation.top_k = 0;
  return rule;
}

// weights[c] = what chunk c of a truncated row weighs, by the whole block.
__device__ void WeighKept(const KeptRow& row, int num_chunks, double* weights) {
  for (int chunk = static_cast<int>(threadIdx.x) / kWarp; chunk < num_chunks; chunk += kSamplingWarps) {
    const int64_t first = int64_t{chunk} * kSamplingChunk;
    float logits[kLogitsOfLane];
    LoadLogits(row.logits, first, row.size, logits);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kLogitsOfLane; ++i) sum += row.Weight(IdOfLane(first, i), logits[i]);
    const double of_chunk = WarpSum(static_cast<double>(sum));
    if (threadIdx.x % kWarp == 0) weights[chunk] = of_chunk;
  }
}

// By the whole block, in every thread. `weights` holds what is collected meanwhile.
__device__ __noinline__ int32_t ChooseTruncated(const SummedRow& row, const DrawRule& rule, double* weights,
                                                ChoiceScratch* choice) {
  __shared__ Mass sums[kPivots * kSamplingWarps];
  __shared__ int number;
  const Kept kept =
      Truncate(row, rule.truncation, rule.uniform, {reinterpret_cast<OrderKey*>(weights), sums, &number});
  if (kept.token_id >= 0) return kept.token_id;
  __syncthreads();  // all have read what was collected
  const KeptRow kept_row = {row, kept};
  const int num_chunks = ChunksOf(row.size);
  WeighKept(kept_row, num_chunks, weights);
  __syncthreads();
  const ThreadChunks mine = ChunksOfThread(num_chunks);
  double length = 0.0;
  for (int i = mine.first; i < mine.first + mine.count; ++i) length += weights[i];
  const BlockScan scan = ScanBlock(length, choice);
  const double target = rule.uniform * scan.total;
  const SampledInterval chunk = ChooseChunk(mine, weights, length, scan, target, choice);
  const int64_t id = chunk.index * kSamplingChunk + threadIdx.x;
  return ChooseId(chunk, kept_row.Weight(id, LogitOfChunk(row, chunk.index)), target, choice);
}

// Of a cluster's first block.
struct DrawMemory {
  DrawRule rule;
  ChoiceScratch choice;
  unsigned largest;
  float log_total;
};

// By the cluster's first block, after the sums.
__device__ void DrawSample(const TokenSamples& samples, int64_t sample, ScaledRow row, const uint64_t* chunks,
                           double* weights, DrawMemory* memory) {
  const DrawRule& rule = memory->rule;
  row.largest = OfAscendingBits(memory->largest);
  const ThreadChunks mine = ChunksOfThread(ChunksOf(row.size));
  double length = 0.0;
#pragma unroll 1
  for (int i = mine.first; i < mine.first + mine.count; ++i) {
    const ChunkSum chunk = ChunkSumOf(chunks[i]);
    weights[i] = static_cast<double>(chunk.sum) * row.WeightOf(chunk.largest);
    length += weights[i];
  }
  BlockScan scan = ScanBlock(length, &memory->choice);
  const double total = scan.total;
  int32_t token = kNoToken;
  float log_prob = NAN;
  if (isfinite(row.largest) && isfinite(total)) {
    if (threadIdx.x == 0 && rule.Truncates()) memory->log_total = static_cast<float>(log(total));
    if (rule.Truncates()) {
      __syncthreads();  // the weights are not wanted any more
      token = ChooseTruncated({row, chunks, total}, rule, weights, &memory->choice);
    } else {
      double target = rule.uniform * total;
      if (rule.is_greedy) {  // the first interval of those that are the largest alone
        length = 0.0, target = 0.0;
#pragma unroll 1
        for (int i = mine.first; i < mine.first + mine.count; ++i) {
          weights[i] = ChunkSumOf(chunks[i]).largest == row.largest;
          length += weights[i];
        }
        __syncthreads();
        scan = ScanBlock(length, &memory->choice);
      }
      const SampledInterval chunk = ChooseChunk(mine, weights, length, scan, target, &memory->choice);
      const float logit = LogitOfChunk(row, chunk.index);
      if (threadIdx.x == 0) memory->log_total = static_cast<float>(log(total));  // while it comes
      const float weight = rule.is_greedy ? static_cast<float>(logit == row.largest) : row.WeightOf(logit);
      token = ChooseId(chunk, weight, target, &memory->choice);
    }
    if (threadIdx.x == 0) log_prob = row.Shifted(row.logits[token]) - memory->log_total;
  }
  if (threadIdx.x != 0) return;
  samples.token_ids[sample] = samples.last_tokens[rule.slot] = token;
  samples.log_probs[sample] = log_prob;
}

// A cluster of any number of blocks a sample, which do not change its bits.
__global__ void __launch_bounds__(kThreads, 2) TokenSamplesKernel(const TokenSamples samples) {
  extern __shared__ uint64_t chunks[];
  __shared__ DrawMemory memory;
  LetNextStart();
  if (threadIdx.x == 0) memory.largest = AscendingBits(-INFINITY);
  ArriveAtCluster();
  const int64_t sample = blockIdx.x / ClusterBlocks();
  const ScaledRow row = {samples.logits + samples.logits_rows[sample] * samples.logits_stride,
                         samples.num_token_ids, InverseOf(samples.temperatures[sample]), 0.0f};
  // By one warp, while the others read: what comes after the sums waits for no more than a chunk.
  if (ClusterRank() == 0 && threadIdx.x == kThreads - kWarp) memory.rule = RuleOf(samples, sample);
  WaitForFormer();
  SumChunks(row, {chunks, &memory.largest});
  ArriveAtCluster();
  if (ClusterRank() > 0) return;
  WaitForCluster();
  DrawSample(samples, sample, row, chunks, reinterpret_cast<double*>(chunks + ChunksOf(row.size)), &memory);
}

// Few samples share the multiprocessors; of many, no block waits for another's end.
unsigned ClusterBlocksOf(int64_t num_samples, int multiprocessors) {
  unsigned blocks = kClusterBlocksMax;
  while (blocks > kClusterBlocksMin && blocks * num_samples > multiprocessors) blocks /= 2;
  return blocks;
}

}  // namespace

cudaError_t LaunchTokenSamples(const TokenSamples& samples, cudaStream_t stream, KernelStart start) {
  if (samples.num_token_ids < 1 || samples.num_token_ids > kTokenIdsMax) return cudaErrorInvalidValue;
  if (samples.num_samples < 0 || samples.num_samples > kSamplesMax) return cudaErrorInvalidValue;
  if (samples.num_samples == 0) return cudaSuccess;
  int multiprocessors = 0;
  if (const cudaError_t error = CountMultiprocessors(&multiprocessors); error != cudaSuccess) return error;
  const unsigned cluster_blocks = ClusterBlocksOf(samples.num_samples, multiprocessors);
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {cluster_blocks, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(samples.num_samples * cluster_blocks));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = SharedBytes(ChunksOf(samples.num_token_ids));
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = start == KernelStart::kBesideFormer ? 2 : 1;
  return cudaLaunchKernelEx(&config, TokenSamplesKernel, samples);
}

}  // namespace warpsmith
