#include "reward_service/grading/kernel_binaries.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/kernel_name.h"
#include "core/base/log.h"
#include "reward_service/cubin/cubin.h"

namespace warpsmith {
namespace {

void Fill(const CubinKernel& kernel, v1::KernelBinary* binary) {
  binary->set_name(Escape(kernel.name, kKernelNameBytesMax));
  binary->set_registers(kernel.registers);
  binary->set_stack_bytes(kernel.stack_bytes);
  binary->set_static_shared_bytes(kernel.static_shared_bytes);
  if (!kernel.instructions.has_value()) return;
  const InstructionFacts& facts = *kernel.instructions;
  binary->set_num_instructions(facts.num_instructions);
  binary->set_num_local_accesses(facts.num_local_accesses);
  binary->set_load_bits(facts.load_bits);
  binary->set_num_tensor_core_instructions(facts.num_tensor_core_instructions);
  binary->set_num_barriers(facts.num_barriers);
  binary->set_num_atomics(facts.num_atomics);
  binary->set_num_shuffles(facts.num_shuffles);
  binary->set_num_async_copies(facts.num_async_copies);
}

}  // namespace

void AddKernels(const std::string& architecture, std::string_view cubin, v1::Compile* compile) {
  const auto& known = compile->architectures();
  if (std::find(known.begin(), known.end(), architecture) == known.end())
    compile->add_architectures(architecture);
  const absl::StatusOr<CubinFacts> facts = ReadCubin(cubin);
  if (!facts.ok()) {
    LogWarning(absl::StrCat("machine code of ", architecture, ": ", facts.status().ToString()));
    return;
  }
  for (const CubinKernel& kernel : facts->kernels) {
    if (compile->kernels_size() == kKernelBinariesMax) return;
    v1::KernelBinary* const binary = compile->add_kernels();
    binary->set_architecture(architecture);
    Fill(kernel, binary);
  }
}

}  // namespace warpsmith
