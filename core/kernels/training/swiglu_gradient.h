// The backward pass of SwiGLU over gate and up side by side (swiglu.h): contract, formula, and the reference on a CPU.
//
// With s = 1 / (1 + exp(-g)):
//   y = round(g s u);  dg = round(dy u s (1 + g (1 - s)));  du = round(dy g s)
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_SWIGLU_GRADIENT_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_SWIGLU_GRADIENT_H_

#include <cstdint>

#include "core/kernels/device_dtype.h"
#include "core/kernels/swiglu.h"

namespace warpsmith {

// T is what is stored: bfloat16 or float on a device; float in the reference, with values that `stored` has. Dense.
template <typename T>
struct SwiGluGradient {
  int64_t rows = 0;
  int64_t size = 0;            // columns of y, a multiple of kSwiGluBlock
  const T* gate_up = nullptr;  // [rows, 2 * size]
  const T* y_grad = nullptr;   // [rows, size]
  T* gate_up_grad = nullptr;   // [rows, 2 * size], may be gate_up
  T* y = nullptr;              // [rows, size], may be y_grad
};

// Computes by KernelSet::swiglu and swiglu_gradient.
void SwiGluGradientReference(const SwiGluGradient<float>& gradient,
                             DeviceDtype stored = DeviceDtype::kBfloat16);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_SWIGLU_GRADIENT_H_
