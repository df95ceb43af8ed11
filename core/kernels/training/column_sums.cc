#include "core/kernels/training/column_sums.h"

namespace warpsmith {

void ColumnSumsReference(const ColumnSums<float>& sums) {
  for (int64_t column = 0; column < sums.columns; ++column) {
    double sum = sums.sums[column];
    for (int64_t row = 0; row < sums.rows; ++row) sum += sums.x[row * RowStride(sums) + column];
    sums.sums[column] = static_cast<float>(sum);
  }
}

}  // namespace warpsmith
