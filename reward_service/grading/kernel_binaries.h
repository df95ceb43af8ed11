// From the machine code of a program to what its grade says of it.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_KERNEL_BINARIES_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_KERNEL_BINARIES_H_

#include <string>
#include <string_view>

#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

inline constexpr int kKernelBinariesMax = 32;

// Adds `architecture` ("sm_90a"), unless it is there, and the kernels of its `cubin` to `compile`, in all
// at most kKernelBinariesMax. A cubin that cannot be read adds no kernels and is said in the log: a verdict
// never depends on it.
void AddKernels(const std::string& architecture, std::string_view cubin, v1::Compile* compile);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_KERNEL_BINARIES_H_
