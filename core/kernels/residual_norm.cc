#include "core/kernels/residual_norm.h"

#include "core/kernels/bfloat16.h"
#include "core/kernels/kernel_set.h"

namespace warpsmith {
namespace {

void RoundRow(float* row, int64_t size) {
  for (int64_t i = 0; i < size; ++i) row[i] = RoundToBfloat16(row[i]);
}

}  // namespace

void ResidualNormReference(const ResidualNorm<float>& norm) {
  const KernelSet<float>& kernels = Kernels<float>();
  for (int64_t row = 0; row < norm.rows; ++row) {
    float* const x = norm.x + row * norm.size;
    if (norm.delta != nullptr) {
      for (int64_t d = 0; d < norm.num_deltas; ++d) {
        kernels.add(norm.delta + (d * norm.rows + row) * norm.size, norm.size, x);
      }
      RoundRow(x, norm.size);
    }
    float* const y = norm.y + row * norm.size;
    kernels.rms_norm(x, norm.weight, norm.size, norm.eps, y);
    RoundRow(y, norm.size);
  }
}

}  // namespace warpsmith
