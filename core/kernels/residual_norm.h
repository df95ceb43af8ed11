// The residual of a decoder and the norm after it in one pass: contract, formula, and the reference on a CPU.
//
//   x[r, i] = round(x[r, i] + sum_d delta[d, r, i])
//   y[r, i] = round(x[r, i] w[i] / sqrt(mean_i x[r, i]^2 + eps))
//
// with round() to what is stored and everything else in float32. The deltas are added one after another, so that the
// sum of parts has one order whichever GPU made them. The norm is of the sum that is stored. Zhang and Sennrich, arXiv
// 1910.07467.
#ifndef WARPSMITH_CORE_KERNELS_RESIDUAL_NORM_H_
#define WARPSMITH_CORE_KERNELS_RESIDUAL_NORM_H_

#include <cstdint>

#include "core/kernels/device_dtype.h"

namespace warpsmith {

// T is what is stored: bfloat16 or float on a device; float in the reference, with values that `stored` has. All
// arrays are dense; y may be one delta.
template <typename T>
struct ResidualNorm {
  int64_t rows = 0;
  int64_t size = 0;
  float eps = 0;
  T* x = nullptr;             // [rows, size]
  const T* delta = nullptr;   // [num_deltas, rows, size]; null: nothing is added, and x only read
  const T* weight = nullptr;  // [size]
  T* y = nullptr;             // [rows, size]
  int64_t num_deltas = 1;
};

// By the CPU's kernels for one row.
void ResidualNormReference(const ResidualNorm<float>& norm, DeviceDtype stored = DeviceDtype::kBfloat16);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_RESIDUAL_NORM_H_
