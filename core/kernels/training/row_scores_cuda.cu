#include <cfloat>

#include "core/kernels/reductions.cuh"
#include "core/kernels/stored_vectors.cuh"
#include "core/kernels/training/row_scores_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 512;
constexpr int kWarpsOfBlock = kThreads / kWarp;

// Sums over part of a row of z: the largest, the sum of exp(z - largest), and that of exp(z - largest) (z - largest).
struct Softmax {
  float largest;
  float sum;
  float moment;
};

// exp(d) weights `s` where its largest is d above that of all.
__device__ Softmax Lowered(const Softmax& s, float largest) {
  const float d = s.largest - largest, weight = expf(d);
  return {largest, weight * s.sum, weight * (s.moment + d * s.sum)};
}

__device__ Softmax Joined(const Softmax& a, const Softmax& b) {
  const float largest = fmaxf(a.largest, b.largest);
  const Softmax x = Lowered(a, largest), y = Lowered(b, largest);
  return {largest, x.sum + y.sum, x.moment + y.moment};
}

__device__ Softmax Shuffled(const Softmax& s, int offset) {
  return {__shfl_xor_sync(kWholeWarp, s.largest, offset), __shfl_xor_sync(kWholeWarp, s.sum, offset),
          __shfl_xor_sync(kWholeWarp, s.moment, offset)};
}

// Returns the block's sums, in thread 0 alone.
__device__ Softmax JoinBlock(Softmax s, Softmax* of_warps) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) s = Joined(s, Shuffled(s, offset));
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = s;
  __syncthreads();
  for (int warp = 1; warp < kWarpsOfBlock && threadIdx.x == 0; ++warp) s = Joined(s, of_warps[warp]);
  return s;
}

// Eight at a time, so that the largest is looked for once for all of them.
__device__ void Take(const float (&z)[kStoredVector], int count, Softmax& s) {
  float largest = s.largest;
#pragma unroll
  for (int i = 0; i < kStoredVector; ++i) {
    if (i < count) largest = fmaxf(largest, z[i]);
  }
  if (largest > s.largest) s = Lowered(s, largest);
#pragma unroll
  for (int i = 0; i < kStoredVector; ++i) {
    if (i >= count) continue;
    const float d = z[i] - s.largest, weight = expf(d);
    s.sum += weight;
    s.moment += weight * d;
  }
}

// A block a row.
__global__ void RowScoringKernel(const RowScoring scoring) {
  __shared__ Softmax of_warps[kWarpsOfBlock];
  const int64_t row = blockIdx.x;
  const float* const logits = scoring.logits + row * scoring.row_stride;
  Softmax softmax = {-FLT_MAX, 0.0f, 0.0f};
  for (int64_t i = threadIdx.x * kStoredVector; i < scoring.num_token_ids; i += kThreads * kStoredVector) {
    float z[kStoredVector];
    LoadVector(logits + i, z);
#pragma unroll
    for (int j = 0; j < kStoredVector; ++j) z[j] *= scoring.inverse_temperature;
    const int64_t left = scoring.num_token_ids - i;
    Take(z, left < kStoredVector ? static_cast<int>(left) : kStoredVector, softmax);
  }
  softmax = JoinBlock(softmax, of_warps);
  if (threadIdx.x != 0) return;
  const float log_sum = logf(softmax.sum);
  const float log_sum_exp = softmax.largest + log_sum;
  scoring.log_sum_exps[row] = log_sum_exp;
  scoring.log_probs[row] = logits[scoring.targets[row]] * scoring.inverse_temperature - log_sum_exp;
  scoring.entropies[row] = log_sum - softmax.moment / softmax.sum;
}

template <typename T>
__global__ void RowScoringGradientKernel(const RowScoringGradient<T> g) {
  const RowScoring& s = g.forward;
  const int64_t row = blockIdx.x;
  const float scale = s.inverse_temperature * g.log_prob_grads[row], log_sum_exp = s.log_sum_exps[row];
  const int64_t target = s.targets[row];
  for (int64_t i = threadIdx.x * kStoredVector; i < s.row_stride; i += kThreads * kStoredVector) {
    float values[kStoredVector];
    LoadVector(s.logits + row * s.row_stride + i, values);
#pragma unroll
    for (int j = 0; j < kStoredVector; ++j) {
      const float probability = expf(values[j] * s.inverse_temperature - log_sum_exp);
      const float gradient = ((i + j == target ? 1.0f : 0.0f) - probability) * scale;
      values[j] = i + j < s.num_token_ids ? gradient : 0.0f;
    }
    StoreVector(values, g.logit_grads + row * s.row_stride + i);
  }
}

bool Fits(const RowScoring& s) {
  return s.rows >= 0 && s.num_token_ids > 0 && s.row_stride >= s.num_token_ids &&
         s.row_stride % kStoredVector == 0;
}

}  // namespace

cudaError_t LaunchRowScoring(const RowScoring& scoring, cudaStream_t stream) {
  if (!Fits(scoring)) return cudaErrorInvalidValue;
  if (scoring.rows == 0) return cudaSuccess;
  RowScoringKernel<<<static_cast<unsigned>(scoring.rows), kThreads, 0, stream>>>(scoring);
  return cudaGetLastError();
}

template <typename T>
cudaError_t LaunchRowScoringGradient(const RowScoringGradient<T>& gradient, cudaStream_t stream) {
  if (!Fits(gradient.forward)) return cudaErrorInvalidValue;
  if (gradient.forward.rows == 0) return cudaSuccess;
  const auto rows = static_cast<unsigned>(gradient.forward.rows);
  RowScoringGradientKernel<T><<<rows, kThreads, 0, stream>>>(gradient);
  return cudaGetLastError();
}

template cudaError_t LaunchRowScoringGradient(const RowScoringGradient<__nv_bfloat16>&, cudaStream_t);
template cudaError_t LaunchRowScoringGradient(const RowScoringGradient<float>&, cudaStream_t);

}  // namespace warpsmith
