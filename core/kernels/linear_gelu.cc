#include "core/kernels/linear_gelu.h"

#include <cmath>

namespace warpsmith {
namespace {

double Gelu(double z) {
  return 0.5 * z * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (z + 0.044715 * z * z * z)));
}

}  // namespace

void LinearGeluReference(const LinearGeluShape& shape, const float* x, const float* weight, const float* bias,
                         double* y) {
  for (int64_t r = 0; r < shape.rows; ++r) {
    for (int64_t n = 0; n < shape.columns; ++n) {
      double sum = bias[n];
      for (int64_t k = 0; k < shape.depth; ++k) {
        sum += static_cast<double>(x[r * shape.depth + k]) * weight[n * shape.depth + k];
      }
      y[r * shape.columns + n] = Gelu(sum);
    }
  }
}

}  // namespace warpsmith
