#include "core/kernels/training/norm_gradient.h"

#include <vector>

#include "core/kernels/kernel_set.h"

namespace warpsmith {

void NormGradientReference(const NormGradient<float>& g, DeviceDtype stored) {
  const KernelSet<float>& kernels = Kernels<float>();
  std::vector<float> normed(g.size);
  for (int64_t row = 0; row < g.rows; ++row) {
    const int64_t at = row * g.size;
    kernels.rms_norm(g.x + at, g.weight, g.size, g.eps, normed.data());
    kernels.rms_norm_gradient(g.x + at, g.weight, g.y_grad + at, g.size, g.eps, g.x_grad + at, g.weight_grad);
    for (int64_t i = 0; i < g.size; ++i) {
      g.x_grad[at + i] = RoundToDtype(g.x_grad[at + i], stored);
      if (g.y != nullptr) g.y[at + i] = RoundToDtype(normed[i], stored);
    }
  }
}

}  // namespace warpsmith
