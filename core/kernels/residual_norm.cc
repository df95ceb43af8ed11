#include "core/kernels/residual_norm.h"

#include "core/kernels/kernel_set.h"

namespace warpsmith {
namespace {

void RoundRow(DeviceDtype stored, int64_t size, float* row) {
  for (int64_t i = 0; i < size; ++i) row[i] = RoundToDtype(row[i], stored);
}

}  // namespace

void ResidualNormReference(const ResidualNorm<float>& norm, DeviceDtype stored) {
  const KernelSet<float>& kernels = Kernels<float>();
  for (int64_t row = 0; row < norm.rows; ++row) {
    float* const x = norm.x + row * norm.size;
    if (norm.delta != nullptr) {
      for (int64_t d = 0; d < norm.num_deltas; ++d) {
        kernels.add(norm.delta + (d * norm.rows + row) * norm.size, norm.size, x);
      }
      RoundRow(stored, norm.size, x);
    }
    float* const y = norm.y + row * norm.size;
    kernels.rms_norm(x, norm.weight, norm.size, norm.eps, y);
    RoundRow(stored, norm.size, y);
  }
}

}  // namespace warpsmith
