#include "core/kernels/reductions.cuh"
#include "core/kernels/rotated_head.cuh"
#include "core/kernels/training/attention_inputs_gradient_cuda.h"
#include "core/kernels/training/column_sums_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarpsOfBlock = kThreads / kWarp;
constexpr int64_t kHeadDimMax = 256;

// Calls body(x, weight, gradient, sum) for each of a lane's elements.
template <int kSteps, typename Body>
__device__ void ForElements(int64_t half, HeadPart<kSteps>& x, HeadPart<kSteps>& weight,
                            HeadPart<kSteps>& gradient, HeadPart<kSteps>& sum, Body body) {
  ForColumns<kSteps>(half, [&](int step, int64_t) {
    body(x.low[step].x, weight.low[step].x, gradient.low[step].x, sum.low[step].x);
    body(x.low[step].y, weight.low[step].y, gradient.low[step].y, sum.low[step].y);
    body(x.high[step].x, weight.high[step].x, gradient.high[step].x, sum.high[step].x);
    body(x.high[step].y, weight.high[step].y, gradient.high[step].y, sum.high[step].y);
  });
}

// dx from dn, in `gradient`; adds to `sum`, of dw.
template <int kSteps>
__device__ void NormBack(int64_t half, float eps, HeadPart<kSteps>& x, HeadPart<kSteps>& weight,
                         HeadPart<kSteps>& gradient, HeadPart<kSteps>& sum) {
  float squares = 0.0f, products = 0.0f;
  ForElements(half, x, weight, gradient, sum, [&](float value, float w, float dn, float) {
    squares += value * value;
    products += w * dn * value;
  });
  const auto size = static_cast<float>(2 * half);
  const float scale = rsqrtf(WarpSum(squares) / size + eps);
  const float pull = WarpSum(products) * scale * scale * scale / size;
  ForElements(half, x, weight, gradient, sum, [&](float value, float w, float& dn, float& dw) {
    dw += dn * value * scale;
    dn = scale * w * dn - value * pull;
  });
}

// A warp a head. A block's warps take heads in turn, in an order of the grid's size alone.
template <int kSteps, typename T>
__global__ void AttentionInputsGradientKernel(const AttentionInputsGradient<T> g) {
  extern __shared__ float block_sums[];  // [2, warps, head_dim]
  const AttentionInputs<T>& f = g.forward;
  const int64_t heads = HeadsOfRow(f), half = f.head_dim / 2;
  const int warp = threadIdx.x / kWarp;
  HeadPart<kSteps> query_sum = {}, key_sum = {};
  for (int64_t i = int64_t{blockIdx.x} * kWarpsOfBlock + warp; i < f.rows * heads;
       i += int64_t{gridDim.x} * kWarpsOfBlock) {
    const int64_t row = i / heads, head = i % heads;
    const HeadPlace place = PlaceOfHead(head, f.group_size);
    HeadPart<kSteps> gradient;
    LoadHead(HeadGradient(g, place, row), half, gradient);
    if (place.kind != HeadKind::kValue) {
      RotaryPart<kSteps> rotary;
      const int64_t at = f.positions[row] * half;
      LoadRotary(f.cosines + at, f.sines + at, half, rotary);
      // The way back is the rotation by the opposite angle.
      for (float2& sine : rotary.sines) sine = {-sine.x, -sine.y};
      RotateHead(rotary, half, gradient);
      const bool is_query = place.kind == HeadKind::kQuery;
      if (const T* const norm = is_query ? f.query_norm : f.key_norm; norm != nullptr) {
        HeadPart<kSteps> x, weight;
        LoadHead(f.qkv + i * f.head_dim, half, x);
        LoadHead(norm, half, weight);
        if (f.bias != nullptr) {
          HeadPart<kSteps> bias;
          LoadHead(f.bias + head * f.head_dim, half, bias);
          AddBias(bias, half, x);
        }
        NormBack(half, f.eps, x, weight, gradient, is_query ? query_sum : key_sum);
      }
    }
    StoreHead(gradient, half, g.qkv_grad + i * f.head_dim);
  }
  if (f.query_norm == nullptr) return;
  StoreHead(query_sum, half, block_sums + warp * f.head_dim);
  StoreHead(key_sum, half, block_sums + (kWarpsOfBlock + warp) * f.head_dim);
  __syncthreads();
  for (int64_t d = threadIdx.x; d < 2 * f.head_dim; d += kThreads) {
    const float* const of_warps = block_sums + d / f.head_dim * kWarpsOfBlock * f.head_dim + d % f.head_dim;
    float sum = 0.0f;
    for (int w = 0; w < kWarpsOfBlock; ++w) sum += of_warps[w * f.head_dim];
    g.parts[blockIdx.x * 2 * f.head_dim + d] = sum;
  }
}

// The halves of the parts' columns go to two places.
cudaError_t SumParts(const float* parts, int64_t num_parts, int64_t head_dim, float* query_norm_grad,
                     float* key_norm_grad, cudaStream_t stream) {
  if (const cudaError_t error =
          LaunchColumnSums<float>({num_parts, head_dim, parts, query_norm_grad, 2 * head_dim}, stream);
      error != cudaSuccess) {
    return error;
  }
  return LaunchColumnSums<float>({num_parts, head_dim, parts + head_dim, key_norm_grad, 2 * head_dim},
                                 stream);
}

}  // namespace

template <typename T>
cudaError_t LaunchAttentionInputsGradient(const AttentionInputsGradient<T>& g, cudaStream_t stream) {
  const AttentionInputs<T>& f = g.forward;
  const bool head_fits = f.head_dim > 0 && f.head_dim % 4 == 0 && f.head_dim <= kHeadDimMax;
  const bool norms_fit = (f.query_norm == nullptr) == (f.key_norm == nullptr);
  if (!head_fits || !norms_fit || f.rows < 0 || f.num_kv_heads < 1 || f.group_size < 1) {
    return cudaErrorInvalidValue;
  }
  if (f.rows == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(NumGradientParts(f.rows));
  const size_t shared = 2 * kWarpsOfBlock * f.head_dim * sizeof(float);
  if (f.head_dim <= 4 * kWarp) {
    AttentionInputsGradientKernel<1, T><<<blocks, kThreads, shared, stream>>>(g);
  } else {
    AttentionInputsGradientKernel<2, T><<<blocks, kThreads, shared, stream>>>(g);
  }
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess || f.query_norm == nullptr) {
    return error;
  }
  return SumParts(g.parts, blocks, f.head_dim, g.query_norm_grad, g.key_norm_grad, stream);
}

template cudaError_t LaunchAttentionInputsGradient(const AttentionInputsGradient<__nv_bfloat16>&,
                                                   cudaStream_t);
template cudaError_t LaunchAttentionInputsGradient(const AttentionInputsGradient<float>&, cudaStream_t);

}  // namespace warpsmith
