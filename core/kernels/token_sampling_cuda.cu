#include <algorithm>

#include "core/base/philox.h"
#include "core/kernels/chunk_sums.cuh"
#include "core/kernels/hopper.cuh"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/reductions.cuh"
#include "core/kernels/scaled_row.cuh"
#include "core/kernels/token_choice.cuh"
#include "core/kernels/token_sampling_cuda.h"
#include "core/kernels/token_truncation.cuh"

namespace warpsmith {
namespace {

constexpr int kThreads = kSamplingThreads;
// Of a sample. 64 samples of 151,936 ids then have 256 blocks, which all run at once on 128 of 132 multiprocessors.
constexpr int kClusterBlocks = 4;
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

// By the whole block, in the first warp. `weights` holds what is collected meanwhile.
__device__ __noinline__ int32_t ChooseTruncated(const SummedRow& row, const DrawRule& rule, double* weights) {
  __shared__ Mass sums[kPivots * kSamplingWarps];
  __shared__ int number;
  __shared__ float floor;
  const Kept kept = Truncate(row, rule.truncation, rule.uniform,
                             {reinterpret_cast<OrderKey*>(weights), sums, &number, &floor});
  if (kept.token_id >= 0) return kept.token_id;
  __syncthreads();  // all have read what was collected
  const KeptRow kept_row = {row, kept};
  const int num_chunks = ChunksOf(row.size);
  WeighKept(kept_row, num_chunks, weights);
  __syncthreads();
  if (threadIdx.x >= kWarp) return kNoToken;
  const LaneChunks mine = ChunksOfLane(num_chunks);
  const double sum = SumOf(weights + mine.first, mine.count);
  return ChooseToken(kept_row, mine, weights, sum, WarpSum(sum), rule.uniform);
}

// By the cluster's first block. Where nothing truncates, by its first warp, and the others end.
__device__ void DrawSample(const TokenSamples& samples, int64_t sample, const DrawRule& rule, ScaledRow row,
                           const uint64_t* chunks, double* weights) {
  __shared__ double total_of_row;
  const bool truncates = rule.Truncates();
  if (!truncates && threadIdx.x >= kWarp) return;
  const LaneChunks mine = ChunksOfLane(ChunksOf(row.size));
  row.largest = LargestOf(chunks, ChunksOf(row.size));
  double sum = 0.0, total = 0.0;
  if (threadIdx.x < kWarp) {
    sum = WeighChunks(row, chunks, mine, weights);
    total = WarpSum(sum);
  }
  if (truncates) {
    if (threadIdx.x == 0) total_of_row = total;
    __syncthreads();  // nor are the weights wanted any more
    total = total_of_row;
  }
  const bool drawn = isfinite(row.largest) && isfinite(total);
  int32_t token = kNoToken;
  if (drawn && truncates) {
    token = ChooseTruncated({row, chunks, total}, rule, weights);
  } else if (drawn) {
    token = rule.is_greedy ? FirstOfLargest(row, mine, chunks)
                           : ChooseToken(row, mine, weights, sum, total, rule.uniform);
  }
  if (threadIdx.x != 0) return;
  samples.token_ids[sample] = samples.last_tokens[rule.slot] = token;
  samples.log_probs[sample] = drawn ? row.Shifted(row.logits[token]) - static_cast<float>(log(total)) : NAN;
}

// A cluster a sample.
__global__ void __launch_bounds__(kThreads, 3) TokenSamplesKernel(const TokenSamples samples) {
  extern __shared__ uint64_t chunks[];
  __shared__ DrawRule rule;
  LetNextStart();
  ArriveAtCluster();
  WaitForFormer();
  const int64_t sample = blockIdx.x / kClusterBlocks;
  // By one warp, while the others read: what comes after the sums waits for no more than a chunk.
  if (ClusterRank() == 0 && threadIdx.x == kThreads - kWarp) rule = RuleOf(samples, sample);
  const ScaledRow row = {samples.logits + samples.logits_rows[sample] * samples.logits_stride,
                         samples.num_token_ids, InverseOf(samples.temperatures[sample]), 0.0f};
  SumChunks(row, kClusterBlocks, chunks);
  ArriveAtCluster();
  if (ClusterRank() > 0) return;
  WaitForCluster();
  DrawSample(samples, sample, rule, row, chunks, reinterpret_cast<double*>(chunks + ChunksOf(row.size)));
}

}  // namespace

cudaError_t LaunchTokenSamples(const TokenSamples& samples, cudaStream_t stream, KernelStart start) {
  if (samples.num_token_ids < 1 || samples.num_token_ids > kTokenIdsMax) return cudaErrorInvalidValue;
  if (samples.num_samples < 0 || samples.num_samples > kSamplesMax) return cudaErrorInvalidValue;
  if (samples.num_samples == 0) return cudaSuccess;
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {kClusterBlocks, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(samples.num_samples * kClusterBlocks));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = SharedBytes(ChunksOf(samples.num_token_ids));
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = start == KernelStart::kBesideFormer ? 2 : 1;
  return cudaLaunchKernelEx(&config, TokenSamplesKernel, samples);
}

}  // namespace warpsmith
