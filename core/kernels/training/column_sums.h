// Sums over the rows of a matrix, added to a row: contract and the reference on a CPU.
//
//   sums[c] = sums[c] + sum_r x[r, c]   in float32
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_COLUMN_SUMS_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_COLUMN_SUMS_H_

#include <cstdint>

namespace warpsmith {

// T is what is stored: bfloat16 or float on a device, float in the reference.
template <typename T>
struct ColumnSums {
  int64_t rows = 0;
  int64_t columns = 0;
  const T* x = nullptr;    // [rows, columns]
  float* sums = nullptr;   // [columns]: added to
  int64_t row_stride = 0;  // elements from a row of x to the next; 0: columns
};

template <typename T>
constexpr int64_t RowStride(const ColumnSums<T>& sums) {
  return sums.row_stride == 0 ? sums.columns : sums.row_stride;
}

// Sums in float64 and rounds once.
void ColumnSumsReference(const ColumnSums<float>& sums);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_COLUMN_SUMS_H_
