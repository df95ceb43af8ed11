// Products of matrices as training needs them, either operand transposed: contract, formula, and the reference on a
// CPU.
//
//   c[i, j] = round(sum_k a(i, k) b(k, j))               or, where it adds, round(c[i, j] + the sum)
//
// summed in float32, rounded to what c stores once.
#ifndef WARPSMITH_CORE_KERNELS_TRAINING_MATRIX_PRODUCT_H_
#define WARPSMITH_CORE_KERNELS_TRAINING_MATRIX_PRODUCT_H_

#include <cstdint>
#include <tuple>

namespace warpsmith {

// All matrices are row-major and dense.
struct MatrixProduct {
  int64_t rows = 0;     // of c
  int64_t columns = 0;  // of c
  int64_t depth = 0;
  bool a_transposed = false;  // a is [depth, rows], else [rows, depth]
  bool b_transposed = false;  // b is [columns, depth], else [depth, columns]
  bool in_float32 = false;    // c holds float32, else what a and b are stored in
  bool adds = false;
  // For a map: CUDA C++17 has no default for it.
  friend bool operator<(const MatrixProduct& x, const MatrixProduct& y) {
    return std::tie(x.rows, x.columns, x.depth, x.a_transposed, x.b_transposed, x.in_float32, x.adds) <
           std::tie(y.rows, y.columns, y.depth, y.a_transposed, y.b_transposed, y.in_float32, y.adds);
  }
};

// Return the three products of a layer y = x W^T with x [tokens, depth] and W [columns, depth]: y itself, the gradient
// of x from that of y, and the gradient of W, which is added to a sum in float32.
constexpr MatrixProduct LinearForward(int64_t tokens, int64_t columns, int64_t depth) {
  return {.rows = tokens, .columns = columns, .depth = depth, .b_transposed = true};
}
constexpr MatrixProduct LinearInputGradient(int64_t tokens, int64_t columns, int64_t depth) {
  return {.rows = tokens, .columns = depth, .depth = columns};
}
constexpr MatrixProduct LinearWeightGradient(int64_t tokens, int64_t columns, int64_t depth) {
  return {.rows = columns,
          .columns = depth,
          .depth = tokens,
          .a_transposed = true,
          .in_float32 = true,
          .adds = true};
}

// Multiplies in float64 without rounding. c [rows, columns] is added to where the product adds, else overwritten.
void MatrixProductReference(const MatrixProduct& product, const float* a, const float* b, double* c);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_TRAINING_MATRIX_PRODUCT_H_
