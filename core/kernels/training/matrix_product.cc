#include "core/kernels/training/matrix_product.h"

namespace warpsmith {

void MatrixProductReference(const MatrixProduct& p, const float* a, const float* b, double* c) {
  for (int64_t i = 0; i < p.rows; ++i) {
    for (int64_t j = 0; j < p.columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < p.depth; ++k) {
        const double left = a[p.a_transposed ? k * p.rows + i : i * p.depth + k];
        sum += left * b[p.b_transposed ? j * p.depth + k : k * p.columns + j];
      }
      double& element = c[i * p.columns + j];
      element = p.adds ? element + sum : sum;
    }
  }
}

}  // namespace warpsmith
