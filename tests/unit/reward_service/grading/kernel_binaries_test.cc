#include "reward_service/grading/kernel_binaries.h"

#include "core/base/file.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::string Cubin(const std::string& file) { return *ReadFile("tests/data/cubin/" + file); }

const v1::KernelBinary& Find(const v1::Compile& compile, const std::string& name) {
  for (const v1::KernelBinary& kernel : compile.kernels()) {
    if (kernel.name() == name) return kernel;
  }
  FAIL(name);
  return v1::KernelBinary::default_instance();
}

// The figures are those of tests/data/cubin/facts.txt.
TEST_CASE("a grade has every fact of a kernel") {
  v1::Compile compile;
  AddKernels("sm_80", Cubin("shared.sm_80.cubin"), &compile);
  AddKernels("sm_80", Cubin("tensor_cores.sm_80.cubin"), &compile);
  AddKernels("sm_80", Cubin("spills.sm_80.cubin"), &compile);
  const v1::KernelBinary& atomics = Find(compile, "atomics");
  CHECK(atomics.architecture() == "sm_80");
  CHECK(atomics.registers() == 20);
  CHECK(atomics.static_shared_bytes() == 128);
  CHECK(atomics.num_instructions() == 51);
  CHECK(atomics.load_bits() == 64);
  CHECK(atomics.num_barriers() == 1);
  CHECK(atomics.num_atomics() == 8);
  CHECK(atomics.num_shuffles() == 1);
  CHECK(Find(compile, "copied_narrowly").num_async_copies() == 2);
  CHECK(Find(compile, "other_products").num_tensor_core_instructions() == 3);
  CHECK(Find(compile, "spilled").stack_bytes() == 64);
  CHECK(Find(compile, "spilled").num_local_accesses() == 35);
}

TEST_CASE("an architecture without a table has registers and nothing of instructions") {
  v1::Compile compile;
  AddKernels("sm_75", Cubin("loads.sm_75.cubin"), &compile);
  CHECK(Find(compile, "vectorised").registers() == 14);
  CHECK(Find(compile, "vectorised").num_instructions() == 0);
  CHECK(Find(compile, "vectorised").load_bits() == 0);
}

TEST_CASE("no more kernels than the most are told, and an architecture once") {
  v1::Compile compile;
  const std::string cubin = Cubin("shared.sm_90a.cubin");  // of five kernels
  for (int i = 0; i < 8; ++i) AddKernels("sm_90a", cubin, &compile);
  CHECK(compile.kernels_size() == kKernelBinariesMax);
  CHECK(compile.architectures_size() == 1);
}

TEST_CASE("machine code that cannot be read is named and has no kernels") {
  v1::Compile compile;
  AddKernels("sm_80", "no ELF file", &compile);
  AddKernels("sm_90a", Cubin("loads.sm_90a.cubin"), &compile);
  CHECK(compile.architectures_size() == 2);
  REQUIRE(compile.kernels_size() == 4);
  CHECK(compile.kernels(0).architecture() == "sm_90a");
}

TEST_CASE("a name that no people can read is escaped, within its limit") {
  v1::Compile compile;
  std::string cubin = Cubin("loads.sm_80.cubin");
  const size_t place = cubin.find(std::string("\0bytes\0", 7));
  REQUIRE(place != std::string::npos);
  cubin.replace(place + 1, 5, "\xff\n\x1b\x01y");
  AddKernels("sm_80", cubin, &compile);
  CHECK(Find(compile, "\\xff\\n\\x1b\\x01y").registers() == 10);
}

}  // namespace
}  // namespace warpsmith
