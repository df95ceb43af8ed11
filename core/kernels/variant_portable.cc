#include "core/kernels/variant.h"

namespace warpsmith {

extern const KernelSet<float> kPortableFloatKernels = MakeKernelSet<float>("portable", UpdateAdamW);
extern const KernelSet<double> kPortableDoubleKernels = MakeKernelSet<double>("portable", nullptr);

}  // namespace warpsmith
