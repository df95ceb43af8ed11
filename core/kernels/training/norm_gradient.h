// The backward pass of RMSNorm: contract, formula, and the reference on a CPU.
//
// With r = 1 / sqrt(mean_i x[i]^2 + eps) of a row:
//   y[i]      = round(x[i] w[i] r)
//   x_grad[i] = round(x_grad[i] + r w[i] dy[i] - x[i] r^3 / size * sum_j w[j] dy[j] x[j])
//   w_grad[i] = w_grad[i] + sum over rows of dy[i] x[i] r
// Zhang and Sennrich, arXiv 1910.07467.
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_NORM_GRADIENT_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_NORM_GRADIENT_H_

#include <algorithm>
#include <cstdint>

#include "core/kernels/device_dtype.h"

namespace warpsmith {

// Rows that the sums over rows are cut into, whatever the device, so that they have one order on all.
inline constexpr int64_t kGradientPartsMax = 512;
constexpr int64_t NumGradientParts(int64_t rows) { return std::clamp<int64_t>(rows, 1, kGradientPartsMax); }

// T is what is stored: bfloat16 or float on a device; float in the reference, with values that `stored` has. All arrays
// are dense.
template <typename T>
struct NormGradient {
  int64_t rows = 0;
  int64_t size = 0;
  float eps = 0;
  const T* x = nullptr;          // [rows, size]
  const T* weight = nullptr;     // [size]
  const T* y_grad = nullptr;     // [rows, size]
  T* x_grad = nullptr;           // [rows, size]: added to
  T* y = nullptr;                // [rows, size], may be y_grad; null: not wanted
  float* parts = nullptr;        // [NumGradientParts(rows), size]: scratch, not used by the reference
  float* weight_grad = nullptr;  // [size]: added to
};

// Computes by KernelSet::rms_norm and rms_norm_gradient.
void NormGradientReference(const NormGradient<float>& gradient, DeviceDtype stored = DeviceDtype::kBfloat16);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_NORM_GRADIENT_H_
