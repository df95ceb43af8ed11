#include "reward_service/cubin/cubin_instructions.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::string Instruction(uint64_t low, uint64_t high = 0) {
  std::string code(kInstructionBytes, '\0');
  std::memcpy(code.data(), &low, sizeof(low));
  std::memcpy(code.data() + sizeof(low), &high, sizeof(high));
  return code;
}

TEST_CASE("no code has no instructions, and padding is none") {
  CHECK(CountInstructions("", 80)->num_instructions == 0);
  CHECK(CountInstructions(Instruction(0x7918) + Instruction(0x794d), 80)->num_instructions == 1);
}

// As nvdisasm lists them: LDG.E.128.CONSTANT, LDGSTS.E.64 of sm_80 and of sm_100a.
TEST_CASE("the widest load counts, and a copy's width stands elsewhere since sm_100") {
  const std::string narrow = Instruction(0x0000000402027981, 0x000ea8000c1e1900);
  const std::string wide = Instruction(0x0000000402047981, 0x000ea8000c1e9d00);
  CHECK(CountInstructions(narrow, 80)->load_bits == 32);
  CHECK(CountInstructions(wide + narrow, 80)->load_bits == 128);
  CHECK(CountInstructions(Instruction(0x0000000006097fae, 0x000fe8000b921a44), 80)->load_bits == 64);
  CHECK(CountInstructions(Instruction(0x0000000006097fae, 0x000fe8000b9a1406), 100)->load_bits == 64);
}

TEST_CASE("an opcode counts only in the families that have it") {
  const std::string wgmma = Instruction(0x79f0), eight_bits = Instruction(0x727a),
                    widest = Instruction(0x797e);
  CHECK(CountInstructions(wgmma, 90)->num_tensor_core_instructions == 1);
  CHECK(CountInstructions(wgmma, 80)->num_tensor_core_instructions == 0);
  CHECK(CountInstructions(eight_bits, 89)->num_tensor_core_instructions == 1);
  CHECK(CountInstructions(eight_bits, 90)->num_tensor_core_instructions == 0);
  CHECK(CountInstructions(widest, 120)->load_bits == 256);
  CHECK(CountInstructions(widest, 90)->load_bits == 0);
}

TEST_CASE("an architecture without a table has no facts, whatever the code") {
  for (const int architecture : {0, -1, 75, 88, 103, 110, 130, 65535}) {
    CAPTURE(architecture);
    CHECK_FALSE(CountInstructions(Instruction(0x794d), architecture).has_value());
  }
}

}  // namespace
}  // namespace warpsmith
