// A linear layer over bfloat16, float16 or float32 with optional bias and residual: contract, formula, buckets of rows,
// and the reference on a CPU.
//
//   y[r, n] = round(sum_k x[r, k] w[n, k] + b[n] + residual[r, n])
//
// summed in float32, rounded to what y stores once.
#ifndef WARPSMITH_CORE_KERNELS_LINEAR_H_
#define WARPSMITH_CORE_KERNELS_LINEAR_H_

#include <cstdint>
#include <tuple>

#include "absl/types/span.h"

namespace warpsmith {

// What y holds: values as x and w are stored, or float32.
enum class LinearOutput { kStored, kFloat32 };

// What a layer is, whatever its rows: w [columns, depth], b [columns], x [rows, depth], y and residual [rows, columns],
// all row-major and dense.
struct LinearShape {
  int64_t columns = 0;
  int64_t depth = 0;
  bool has_bias = false;
  bool has_residual = false;
  LinearOutput output = LinearOutput::kStored;
  // For a map: CUDA C++17 has no default for it.
  friend bool operator<(const LinearShape& a, const LinearShape& b) {
    return std::tie(a.columns, a.depth, a.has_bias, a.has_residual, a.output) <
           std::tie(b.columns, b.depth, b.has_bias, b.has_residual, b.output);
  }
};

// Index of the bucket that `rows` belong to: the first that has at least as many. `buckets` ascends. -1: no rows, or
// more than any bucket has.
int BucketOfRows(int64_t rows, absl::Span<const int64_t> buckets);

// Fewest rows that belong to bucket `index`.
int64_t FirstRowsOfBucket(int index, absl::Span<const int64_t> buckets);

// In float64, not rounded. bias and residual are not read where the shape has none.
void LinearReference(const LinearShape& shape, int64_t rows, const float* x, const float* weight,
                     const float* bias, const float* residual, double* y);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_LINEAR_H_
