// A linear layer with bias and GELU: contract, formula, and the reference on a CPU.
//
//   y[r, n] = gelu(sum_k x[r, k] w[n, k] + b[n])
//   gelu(z) = z / 2 (1 + tanh(sqrt(2 / pi) (z + 0.044715 z^3)))
//
// Hendrycks and Gimpel, arXiv 1606.08415, in the tanh form that cuBLASLt's epilogue computes.
#ifndef WARPSMITH_CORE_KERNELS_LINEAR_GELU_H_
#define WARPSMITH_CORE_KERNELS_LINEAR_GELU_H_

#include <cstdint>

namespace warpsmith {

// x [rows, depth], w [columns, depth], b [columns], y [rows, columns], all row-major and dense.
struct LinearGeluShape {
  int64_t rows;
  int64_t columns;
  int64_t depth;
};

// In float64 from float32 arrays on the host: what a device's result is compared with.
void LinearGeluReference(const LinearGeluShape& shape, const float* x, const float* weight, const float* bias,
                         double* y);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_LINEAR_GELU_H_
