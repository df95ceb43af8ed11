#include "reward_service/scoring/kernel_facts.h"

#include <algorithm>
#include <string>

namespace warpsmith {
namespace {

// Smaller frames are those of libm's sines of large arguments, 32 bytes, and 40 for double: never entered by others.
constexpr int kStackBytesMin = 48;

void Add(const v1::KernelBinary& kernel, KernelFacts* facts) {
  ++facts->num_kernels;
  facts->registers = std::max(facts->registers, kernel.registers());
  const bool spills = kernel.num_local_accesses() > 0 && kernel.stack_bytes() >= kStackBytesMin;
  if (spills && kernel.stack_bytes() > facts->stack_bytes) {
    facts->stack_bytes = kernel.stack_bytes();
    facts->num_local_accesses = kernel.num_local_accesses();
  }
  facts->load_bits_max = std::max(facts->load_bits_max, kernel.load_bits());
  const bool wide = kernel.load_bits() >= kWideLoadBits || kernel.num_tensor_core_instructions() > 0 ||
                    kernel.num_async_copies() > 0;
  facts->num_wide_kernels += wide;
  facts->num_narrow_kernels += !wide && kernel.load_bits() > 0;
  facts->shares_memory |= kernel.static_shared_bytes() > 0 || kernel.num_barriers() > 0;
  facts->shuffles |= kernel.num_shuffles() > 0;
  facts->uses_tensor_cores |= kernel.num_tensor_core_instructions() > 0;
  if (kernel.num_shuffles() == 0) facts->num_lone_atomics += kernel.num_atomics();
}

}  // namespace

std::optional<KernelFacts> KernelFactsOf(const v1::Grade& grade) {
  if (!grade.environment().has_gpu()) return std::nullopt;
  const std::string& own = grade.environment().gpu().architecture();
  const auto& kernels = grade.compile().kernels();
  const auto is_own = [&](const v1::KernelBinary& kernel) { return kernel.architecture() == own; };
  const bool has_own = std::any_of(kernels.begin(), kernels.end(), is_own);
  KernelFacts facts;
  for (const v1::KernelBinary& kernel : kernels) {
    if (kernel.num_instructions() > 0 && (is_own(kernel) || !has_own)) Add(kernel, &facts);
  }
  return facts;
}

double CeilingShare(const v1::Profile& profile) {
  const double ceiling = profile.gigabytes_per_second_ceiling();
  return ceiling > 0 ? profile.gigabytes_per_second() / ceiling : 0;
}

}  // namespace warpsmith
