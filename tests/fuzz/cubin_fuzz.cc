// Any bytes are a cubin whose facts are within bounds, or INVALID_ARGUMENT. The same bytes are a
// kernel's name, too.
#include "core/base/check.h"
#include "core/base/kernel_name.h"
#include "reward_service/cubin/cubin.h"
#include "tests/fuzz/fuzz_input.h"

namespace warpsmith {
namespace {

void CheckInstructions(const InstructionFacts& facts) {
  for (const int count : {facts.num_local_accesses, facts.num_tensor_core_instructions, facts.num_barriers,
                          facts.num_atomics, facts.num_shuffles, facts.num_async_copies}) {
    WS_CHECK(count >= 0 && count <= facts.num_instructions) << count;
  }
  WS_CHECK(facts.load_bits >= 0 && facts.load_bits <= 256) << facts.load_bits;
}

void CheckFacts(const CubinFacts& facts, size_t num_bytes) {
  WS_CHECK(facts.kernels.size() <= kCubinKernelsMax);
  size_t num_instructions = 0;
  for (const CubinKernel& kernel : facts.kernels) {
    WS_CHECK(kernel.name.size() <= kKernelNameBytesMax);
    WS_CHECK(kernel.registers >= 0 && kernel.stack_bytes >= 0 && kernel.static_shared_bytes >= 0);
    if (!kernel.instructions.has_value()) continue;
    CheckInstructions(*kernel.instructions);
    num_instructions += kernel.instructions->num_instructions;
  }
  WS_CHECK(num_instructions <= num_bytes / kInstructionBytes) << num_instructions;
}

}  // namespace
}  // namespace warpsmith

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  const std::string_view text = warpsmith::AsText(bytes, num_bytes);
  const absl::StatusOr<warpsmith::CubinFacts> facts = warpsmith::ReadCubin(text);
  WS_CHECK(facts.ok() || absl::IsInvalidArgument(facts.status())) << facts.status();
  if (facts.ok()) warpsmith::CheckFacts(*facts, num_bytes);
  WS_CHECK(warpsmith::KernelName(text).size() <= warpsmith::kKernelNameBytesMax);
  return 0;
}
