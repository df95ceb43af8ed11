// What a warp does with a head of a row of qkv (attention_inputs.h): bias, norm, rotation.
//
// Kernels that do this must agree to the bit. So every operation whose rounding matters is written as one instruction.
#ifndef WARPSMITH_CORE_KERNELS_ROTATED_HEAD_CUH_
#define WARPSMITH_CORE_KERNELS_ROTATED_HEAD_CUH_

#include <cstdint>

#include "core/kernels/attention_inputs.h"
#include "core/kernels/reductions.cuh"
#include "core/kernels/stored_pair.cuh"

namespace warpsmith {

// What a lane holds of a head: two neighbours of its lower half and the two that they are rotated with, in each of
// kSteps rounds of the warp.
template <int kSteps>
struct HeadPart {
  float2 low[kSteps];
  float2 high[kSteps];
};

// Cosines and sines of a lane's columns.
template <int kSteps>
struct RotaryPart {
  float2 cosines[kSteps];
  float2 sines[kSteps];
};

template <typename T>
__device__ inline float2 LoadPair(const T* from) {
  return WidenedPair<T>(*reinterpret_cast<const uint32_t*>(from));
}
template <typename T>
__device__ inline void StorePair(float2 pair, T* to) {
  *reinterpret_cast<uint32_t*>(to) = NarrowedPair<T>(pair.x, pair.y);
}
__device__ inline float2 LoadPair(const float* from) { return *reinterpret_cast<const float2*>(from); }
__device__ inline void StorePair(float2 pair, float* to) { *reinterpret_cast<float2*>(to) = pair; }

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

template <int kSteps, typename T>
__device__ void StoreHead(const HeadPart<kSteps>& part, int64_t half, T* head) {
  ForColumns<kSteps>(half, [&](int step, int64_t column) {
    StorePair(part.low[step], head + column);
    StorePair(part.high[step], head + half + column);
  });
}

template <int kSteps>
__device__ void LoadRotary(const float* cosines, const float* sines, int64_t half, RotaryPart<kSteps>& part) {
  ForColumns<kSteps>(half, [&](int step, int64_t column) {
    part.cosines[step] = *reinterpret_cast<const float2*>(cosines + column);
    part.sines[step] = *reinterpret_cast<const float2*>(sines + column);
  });
}

__device__ inline float2 PairSum(float2 a, float2 b) { return {__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y)}; }

template <int kSteps>
__device__ void AddBias(const HeadPart<kSteps>& bias, int64_t half, HeadPart<kSteps>& part) {
  ForColumns<kSteps>(half, [&](int step, int64_t) {
    part.low[step] = PairSum(part.low[step], bias.low[step]);
    part.high[step] = PairSum(part.high[step], bias.high[step]);
  });
}

__device__ inline float2 PairScaled(float2 a, float scale, float2 weight) {
  return {__fmul_rn(__fmul_rn(a.x, scale), weight.x), __fmul_rn(__fmul_rn(a.y, scale), weight.y)};
}

template <int kSteps>
__device__ void NormHead(const HeadPart<kSteps>& weight, int64_t half, float eps, HeadPart<kSteps>& part) {
  float squares = 0.0f;
  ForColumns<kSteps>(half, [&](int step, int64_t) {
    const float2 low = part.low[step], high = part.high[step];
    for (const float value : {low.x, low.y, high.x, high.y}) squares = __fmaf_rn(value, value, squares);
  });
  const float mean = __fdiv_rn(WarpSum(squares), static_cast<float>(2 * half));
  const float scale = rsqrtf(__fadd_rn(mean, eps));
  ForColumns<kSteps>(half, [&](int step, int64_t) {
    part.low[step] = PairScaled(part.low[step], scale, weight.low[step]);
    part.high[step] = PairScaled(part.high[step], scale, weight.high[step]);
  });
}

// a b - c d, and a b + c d.
__device__ inline float ProductsLess(float a, float b, float c, float d) {
  return __fmaf_rn(a, b, -__fmul_rn(c, d));
}
__device__ inline float ProductsMore(float a, float b, float c, float d) {
  return __fmaf_rn(a, b, __fmul_rn(c, d));
}

template <int kSteps>
__device__ void RotateHead(const RotaryPart<kSteps>& rotary, int64_t half, HeadPart<kSteps>& part) {
  ForColumns<kSteps>(half, [&](int step, int64_t) {
    const float2 low = part.low[step], high = part.high[step];
    const float2 c = rotary.cosines[step], s = rotary.sines[step];
    part.low[step] = {ProductsLess(low.x, c.x, high.x, s.x), ProductsLess(low.y, c.y, high.y, s.y)};
    part.high[step] = {ProductsMore(high.x, c.x, low.x, s.x), ProductsMore(high.y, c.y, low.y, s.y)};
  });
}

// A head of a row, and what becomes of it. Its two parts are apart because all but qkv is there before the former
// kernel has ended.
template <int kSteps, typename T>
class RotatedHead {
 public:
  // Loads all but qkv. `head` counts those of the row.
  __device__ RotatedHead(const AttentionInputs<T>& inputs, int64_t row, int64_t head)
      : half_(inputs.head_dim / 2), from_(inputs.qkv + (row * HeadsOfRow(inputs) + head) * inputs.head_dim) {
    const HeadKind kind = PlaceOfHead(head, inputs.group_size).kind;
    rotates_ = kind != HeadKind::kValue;
    biased_ = inputs.bias != nullptr;
    if (biased_) LoadHead(inputs.bias + head * inputs.head_dim, half_, bias_);
    if (!rotates_) return;
    const T* const norm = kind == HeadKind::kQuery ? inputs.query_norm : inputs.key_norm;
    normed_ = norm != nullptr;
    if (normed_) LoadHead(norm, half_, norm_);
    const int64_t at = inputs.positions[row] * half_;
    LoadRotary(inputs.cosines + at, inputs.sines + at, half_, rotary_);
  }

  __device__ HeadPart<kSteps> Compute(float eps) const {
    HeadPart<kSteps> part;
    LoadHead(from_, half_, part);
    if (biased_) AddBias(bias_, half_, part);
    if (!rotates_) return part;
    if (normed_) NormHead(norm_, half_, eps, part);
    RotateHead(rotary_, half_, part);
    return part;
  }

 private:
  const int64_t half_;
  const T* const from_;
  bool rotates_ = false, biased_ = false, normed_ = false;
  HeadPart<kSteps> bias_, norm_;
  RotaryPart<kSteps> rotary_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_ROTATED_HEAD_CUH_
