#include "core/kernels/swiglu.h"

#include "core/kernels/kernel_set.h"

namespace warpsmith {

void SwiGluReference(const SwiGlu<float>& swiglu, DeviceDtype stored) {
  for (int64_t row = 0; row < swiglu.rows; ++row) {
    float* const y = swiglu.y + row * swiglu.size;
    Kernels<float>().swiglu(swiglu.gate_up + row * 2 * swiglu.size, swiglu.size, y);
    for (int64_t i = 0; i < swiglu.size; ++i) y[i] = RoundToDtype(y[i], stored);
  }
}

}  // namespace warpsmith
