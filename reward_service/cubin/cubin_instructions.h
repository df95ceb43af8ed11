// What the machine code of a kernel shows, counted by opcode.
#ifndef WARPSMITH_REWARD_SERVICE_CUBIN_CUBIN_INSTRUCTIONS_H_
#define WARPSMITH_REWARD_SERVICE_CUBIN_CUBIN_INSTRUCTIONS_H_

#include <cstddef>
#include <optional>
#include <string_view>

namespace warpsmith {

inline constexpr size_t kInstructionBytes = 16;

// Counts of instructions as they stand in the code, each once however often it runs.
struct InstructionFacts {
  int num_instructions = 0;    // without NOP, which only pads
  int num_local_accesses = 0;  // loads and stores of local memory: spilled registers, indexed arrays
  // The widest load from global memory, copies to shared memory (cp.async) included: 8 to 256. 0: none.
  int load_bits = 0;
  int num_tensor_core_instructions = 0;
  int num_barriers = 0;      // of a block: __syncthreads and bar.sync
  int num_atomics = 0;       // on global and shared memory, with and without a result
  int num_shuffles = 0;      // and reductions within a warp
  int num_async_copies = 0;  // between global and shared memory: of values, blocks or tensors
};

// The facts of `code`, a whole number of instructions, any bytes. Nothing for an architecture (80 for
// sm_80) whose opcodes are not known: a newer one may have given them another meaning.
std::optional<InstructionFacts> CountInstructions(std::string_view code, int architecture);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_CUBIN_CUBIN_INSTRUCTIONS_H_
