// SwiGLU over gate and up side by side: contract, formula, and the reference on a CPU.
//
//   y[r, i] = g / (1 + exp(-g)) * u  with g = gate_up[r, GateColumn(i)], u = gate_up[r, GateColumn(i) + 16]
//
// Shazeer, arXiv 2002.05202.
#ifndef WARPSMITH_CORE_KERNELS_SWIGLU_H_
#define WARPSMITH_CORE_KERNELS_SWIGLU_H_

#include <cstdint>

#include "core/kernels/device_dtype.h"

namespace warpsmith {

// Columns of gate that lie together, before as many of up.
inline constexpr int64_t kSwiGluBlock = 16;

constexpr int64_t GateColumn(int64_t i) { return i / kSwiGluBlock * (2 * kSwiGluBlock) + i % kSwiGluBlock; }

// T is what is stored: bfloat16 or float on a device; float in the reference, which rounds y to `stored`. Dense.
template <typename T>
struct SwiGlu {
  int64_t rows = 0;
  int64_t size = 0;            // columns of y, a multiple of kSwiGluBlock
  const T* gate_up = nullptr;  // [rows, 2 * size]
  T* y = nullptr;              // [rows, size]
};

// By KernelSet::swiglu.
void SwiGluReference(const SwiGlu<float>& swiglu, DeviceDtype stored = DeviceDtype::kBfloat16);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_SWIGLU_H_
