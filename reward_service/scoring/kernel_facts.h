// What the machine code of a program's kernels says together, and whether a GPU's rules speak of a program at all.
#ifndef WARPSMITH_REWARD_SERVICE_SCORING_KERNEL_FACTS_H_
#define WARPSMITH_REWARD_SERVICE_SCORING_KERNEL_FACTS_H_

#include <optional>

#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// A load of so many bits brings several numbers at once.
constexpr int kWideLoadBits = 64;

// Of kernels whose instructions are known. They could run; that they ran is not known.
struct KernelFacts {
  int num_kernels = 0;  // 0: nothing below is known
  // Of a thread of the kernel that keeps most in local memory: registers that were spilled, and arrays that are
  // indexed. 0 where no kernel keeps more there than a function of libm does.
  int stack_bytes = 0;
  int num_local_accesses = 0;
  int load_bits_max = 0;  // of the widest load from global memory; 0 where there is none
  // Of kernels that read global memory: by loads of several numbers, asynchronous copies or with tensor cores, and
  // without any of these.
  int num_wide_kernels = 0;
  int num_narrow_kernels = 0;
  int registers = 0;  // of a thread, the most
  // Some kernel has shared memory or a barrier, shuffles, instructions of tensor cores.
  bool shares_memory = false;
  bool shuffles = false;
  bool uses_tensor_cores = false;
  // Of kernels without a shuffle.
  int num_lone_atomics = 0;

  bool spills() const { return num_local_accesses > 0; }
};

// Nothing for a program that was not measured on a GPU: this alone decides whose rules and words are used. Kernels
// for other architectures than the GPU's are left out, where there are any for it.
std::optional<KernelFacts> KernelFactsOf(const v1::Grade& grade);

// Achieved bandwidth beside the ceiling; 0 where the ceiling is not known.
double CeilingShare(const v1::Profile& profile);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SCORING_KERNEL_FACTS_H_
