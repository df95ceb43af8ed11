#include "core/kernels/linear.h"

#include <algorithm>

namespace warpsmith {

int BucketOfRows(int64_t rows, absl::Span<const int64_t> buckets) {
  const auto* const found = std::lower_bound(buckets.begin(), buckets.end(), rows);
  if (rows < 1 || found == buckets.end()) return -1;
  return static_cast<int>(found - buckets.begin());
}

int64_t FirstRowsOfBucket(int index, absl::Span<const int64_t> buckets) {
  return index == 0 ? 1 : buckets[index - 1] + 1;
}

void LinearReference(const LinearShape& shape, int64_t rows, const float* x, const float* weight,
                     const float* bias, const float* residual, double* y) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < shape.columns; ++n) {
      double sum = shape.has_bias ? bias[n] : 0.0;
      if (shape.has_residual) sum += residual[r * shape.columns + n];
      for (int64_t k = 0; k < shape.depth; ++k) {
        sum += static_cast<double>(x[r * shape.depth + k]) * weight[n * shape.depth + k];
      }
      y[r * shape.columns + n] = sum;
    }
  }
}

}  // namespace warpsmith
