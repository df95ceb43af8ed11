#include "core/kernels/training/swiglu_gradient.h"

#include <vector>

#include "core/kernels/kernel_set.h"

namespace warpsmith {

void SwiGluGradientReference(const SwiGluGradient<float>& g, DeviceDtype stored) {
  const KernelSet<float>& kernels = Kernels<float>();
  std::vector<float> y(g.size), gate_up_grad(2 * g.size);
  for (int64_t row = 0; row < g.rows; ++row) {
    const float* const gate_up = g.gate_up + row * 2 * g.size;
    kernels.swiglu(gate_up, g.size, y.data());
    kernels.swiglu_gradient(gate_up, g.y_grad + row * g.size, g.size, gate_up_grad.data());
    for (int64_t i = 0; i < g.size; ++i) g.y[row * g.size + i] = RoundToDtype(y[i], stored);
    for (int64_t i = 0; i < 2 * g.size; ++i) {
      g.gate_up_grad[row * 2 * g.size + i] = RoundToDtype(gate_up_grad[i], stored);
    }
  }
}

}  // namespace warpsmith
