#include "core/kernels/variant.h"

namespace warpsmith {

extern const KernelSet<float> kAvx512FloatKernels = MakeKernelSet<float>("avx512", UpdateAdamW);
extern const KernelSet<double> kAvx512DoubleKernels = MakeKernelSet<double>("avx512", nullptr);

}  // namespace warpsmith
