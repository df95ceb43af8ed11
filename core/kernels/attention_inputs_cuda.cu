#include "core/kernels/attention_inputs_cuda.h"
#include "core/kernels/kernel_start.cuh"
#include "core/kernels/reductions.cuh"

namespace warpsmith {
namespace {

constexpr int kThreads = 256;
constexpr int kWarpsOfBlock = kThreads / kWarp;
constexpr int64_t kBlocksMax = 1 << 20;  // heads beyond are taken in turn
constexpr int64_t kHeadDimMax = 256;

// What a lane holds of a head: two neighbours of its lower half and the two that they are rotated with, in each of
// kSteps rounds of the warp.
template <int kSteps>
struct HeadPart {
  float2 low[kSteps];
  float2 high[kSteps];
};

__device__ float2 LoadPair(const __nv_bfloat16* from) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(from));
}
__device__ void StorePair(float2 pair, __nv_bfloat16* to) {
  *reinterpret_cast<__nv_bfloat162*>(to) = __float22bfloat162_rn(pair);
}
__device__ float2 LoadPair(const float* from) { return *reinterpret_cast<const float2*>(from); }
__device__ void StorePair(float2 pair, float* to) { *reinterpret_cast<float2*>(to) = pair; }
__device__ float2 Sum(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ float2 Scaled(float2 a, float scale, float2 weight) {
  return {a.x * scale * weight.x, a.y * scale * weight.y};
}

// Calls body(step, column) for the columns of the lower half that are this lane's.
template <int kSteps, typename Body>
__device__ void ForColumns(int64_t half, Body body) {
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int64_t column = 2 * (static_cast<int64_t>(step) * kWarp + threadIdx.x % kWarp);
    if (column < half) body(step, column);
  }
}

template <int kSteps, typename T>
__device__ void LoadHead(const T* head, int64_t half, HeadPart<kSteps>& part) {
  ForColumns<kSteps>(half, [&](int step, int64_t column) {
    part.low[step] = LoadPair(head + column);
    part.high[step] = LoadPair(head + half + column);
  });
}

template <int kSteps>
__device__ void AddBias(const HeadPart<kSteps>& bias, int64_t half, HeadPart<kSteps>& part) {
  ForColumns<kSteps>(half, [&](int step, int64_t) {
    part.low[step] = Sum(part.low[step], bias.low[step]);
    part.high[step] = Sum(part.high[step], bias.high[step]);
  });
}

template <int kSteps>
__device__ void NormHead(const HeadPart<kSteps>& weight, int64_t half, float eps, HeadPart<kSteps>& part) {
  float squares = 0.0f;
  ForColumns<kSteps>(half, [&](int step, int64_t) {
    const float2 low = part.low[step], high = part.high[step];
    squares += low.x * low.x + low.y * low.y + high.x * high.x + high.y * high.y;
  });
  const float scale = rsqrtf(WarpSum(squares) / static_cast<float>(2 * half) + eps);
  ForColumns<kSteps>(half, [&](int step, int64_t) {
    part.low[step] = Scaled(part.low[step], scale, weight.low[step]);
    part.high[step] = Scaled(part.high[step], scale, weight.high[step]);
  });
}

// Cosines and sines of a lane's columns.
template <int kSteps>
struct RotaryPart {
  float2 cosines[kSteps];
  float2 sines[kSteps];
};

template <int kSteps>
__device__ void LoadRotary(const float* cosines, const float* sines, int64_t half, RotaryPart<kSteps>& part) {
  ForColumns<kSteps>(half, [&](int step, int64_t column) {
    part.cosines[step] = *reinterpret_cast<const float2*>(cosines + column);
    part.sines[step] = *reinterpret_cast<const float2*>(sines + column);
  });
}

template <int kSteps>
__device__ void RotateHead(const RotaryPart<kSteps>& rotary, int64_t half, HeadPart<kSteps>& part) {
  ForColumns<kSteps>(half, [&](int step, int64_t) {
    const float2 low = part.low[step], high = part.high[step];
    const float2 c = rotary.cosines[step], s = rotary.sines[step];
    part.low[step] = {low.x * c.x - high.x * s.x, low.y * c.y - high.y * s.y};
    part.high[step] = {high.x * c.x + low.x * s.x, high.y * c.y + low.y * s.y};
  });
}

// A warp a head. What no kernel of a step writes is loaded before the wait for the former.
template <int kSteps, typename T>
__global__ void AttentionInputsKernel(const AttentionInputs<T> inputs) {
  LetNextStart();
  const int64_t heads = HeadsOfRow(inputs), half = inputs.head_dim / 2;
  const int64_t step_of_grid = int64_t{gridDim.x} * kWarpsOfBlock;
  for (int64_t i = int64_t{blockIdx.x} * kWarpsOfBlock + threadIdx.x / kWarp; i < inputs.rows * heads;
       i += step_of_grid) {
    const int64_t row = i / heads, head = i % heads;
    const HeadPlace place = PlaceOfHead(head, inputs.group_size);
    const bool rotates = place.kind != HeadKind::kValue;
    const T* const norm = place.kind == HeadKind::kQuery ? inputs.query_norm : inputs.key_norm;
    HeadPart<kSteps> part, bias, norm_weight;
    RotaryPart<kSteps> rotary;
    if (inputs.bias != nullptr) LoadHead(inputs.bias + head * inputs.head_dim, half, bias);
    if (rotates) {
      if (norm != nullptr) LoadHead(norm, half, norm_weight);
      const int64_t at = inputs.positions[row] * half;
      LoadRotary(inputs.cosines + at, inputs.sines + at, half, rotary);
    }
    T* const to = DestinationOf(inputs, place, row);
    WaitForFormer();
    LoadHead(inputs.qkv + i * inputs.head_dim, half, part);
    if (inputs.bias != nullptr) AddBias(bias, half, part);
    if (rotates) {
      if (norm != nullptr) NormHead(norm_weight, half, inputs.eps, part);
      RotateHead(rotary, half, part);
    }
    ForColumns<kSteps>(half, [&](int step, int64_t column) {
      StorePair(part.low[step], to + column);
      StorePair(part.high[step], to + half + column);
    });
  }
}

}  // namespace

// Which kernel runs depends on head_dim alone.
template <typename T>
cudaError_t LaunchAttentionInputs(const AttentionInputs<T>& inputs, cudaStream_t stream, KernelStart start) {
  const bool head_fits = inputs.head_dim > 0 && inputs.head_dim % 4 == 0 && inputs.head_dim <= kHeadDimMax;
  if (!head_fits || inputs.rows < 0 || inputs.num_kv_heads < 1 || inputs.group_size < 1) {
    return cudaErrorInvalidValue;
  }
  if (inputs.rows == 0) return cudaSuccess;
  const int64_t wanted = (inputs.rows * HeadsOfRow(inputs) + kWarpsOfBlock - 1) / kWarpsOfBlock;
  const auto blocks = static_cast<unsigned>(wanted < kBlocksMax ? wanted : kBlocksMax);
  if (inputs.head_dim <= 4 * kWarp) {
    return StartKernel(start, AttentionInputsKernel<1, T>, blocks, kThreads, 0, stream, inputs);
  }
  return StartKernel(start, AttentionInputsKernel<2, T>, blocks, kThreads, 0, stream, inputs);
}

template cudaError_t LaunchAttentionInputs(const AttentionInputs<__nv_bfloat16>&, cudaStream_t, KernelStart);
template cudaError_t LaunchAttentionInputs(const AttentionInputs<float>&, cudaStream_t, KernelStart);

}  // namespace warpsmith
