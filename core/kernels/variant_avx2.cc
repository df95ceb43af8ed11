#include "core/kernels/variant.h"

namespace warpsmith {

extern const KernelSet<float> kAvx2FloatKernels = MakeKernelSet<float>("avx2", UpdateAdamW);
extern const KernelSet<double> kAvx2DoubleKernels = MakeKernelSet<double>("avx2", nullptr);

}  // namespace warpsmith
