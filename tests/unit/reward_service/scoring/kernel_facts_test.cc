#include "reward_service/scoring/kernel_facts.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

v1::Grade OnGpu() {
  v1::Grade grade;
  grade.mutable_environment()->mutable_gpu()->set_architecture("sm_90a");
  return grade;
}

v1::KernelBinary* AddKernel(v1::Grade* grade, const char* architecture = "sm_90a") {
  v1::KernelBinary* const kernel = grade->mutable_compile()->add_kernels();
  kernel->set_architecture(architecture);
  kernel->set_num_instructions(100);
  return kernel;
}

TEST_CASE("only a program that was measured on a GPU has such facts") {
  v1::Grade grade;
  AddKernel(&grade);
  CHECK_FALSE(KernelFactsOf(grade).has_value());
  CHECK(KernelFactsOf(OnGpu())->num_kernels == 0);
}

TEST_CASE("kernels for other GPUs, and those that could not be read, are left out") {
  v1::Grade grade = OnGpu();
  AddKernel(&grade, "sm_100a")->set_load_bits(128);
  CHECK(KernelFactsOf(grade)->load_bits_max == 128);  // nothing better is known
  AddKernel(&grade)->set_load_bits(32);
  CHECK(KernelFactsOf(grade)->num_kernels == 1);
  CHECK(KernelFactsOf(grade)->load_bits_max == 32);
  AddKernel(&grade)->set_num_instructions(0);
  CHECK(KernelFactsOf(grade)->num_kernels == 1);
}

TEST_CASE("the frames of libm's sines are no spills") {
  v1::Grade grade = OnGpu();
  v1::KernelBinary* const kernel = AddKernel(&grade);
  kernel->set_stack_bytes(40);
  kernel->set_num_local_accesses(20);
  CHECK_FALSE(KernelFactsOf(grade)->spills());
  kernel->set_stack_bytes(48);
  CHECK(KernelFactsOf(grade)->spills());
  kernel->set_num_local_accesses(0);
  CHECK_FALSE(KernelFactsOf(grade)->spills());
}

TEST_CASE("of several kernels the one that keeps most in local memory speaks") {
  v1::Grade grade = OnGpu();
  for (const int stack_bytes : {64, 160, 48}) {
    v1::KernelBinary* const kernel = AddKernel(&grade);
    kernel->set_stack_bytes(stack_bytes);
    kernel->set_num_local_accesses(stack_bytes / 4);
    kernel->set_registers(stack_bytes);
  }
  CHECK(KernelFactsOf(grade)->stack_bytes == 160);
  CHECK(KernelFactsOf(grade)->num_local_accesses == 40);
  CHECK(KernelFactsOf(grade)->registers == 160);
}

TEST_CASE("a kernel that reads is wide by its loads, by copies or by tensor cores") {
  v1::Grade grade = OnGpu();
  const auto counts = [&grade] {
    const KernelFacts facts = *KernelFactsOf(grade);
    return std::pair(facts.num_wide_kernels, facts.num_narrow_kernels);
  };
  AddKernel(&grade);  // reads nothing
  CHECK(counts() == std::pair(0, 0));
  AddKernel(&grade)->set_load_bits(32);
  CHECK(counts() == std::pair(0, 1));
  AddKernel(&grade)->set_load_bits(64);
  CHECK(counts() == std::pair(1, 1));
  AddKernel(&grade)->set_num_async_copies(1);
  CHECK(counts() == std::pair(2, 1));
  AddKernel(&grade)->set_num_tensor_core_instructions(1);
  CHECK(counts() == std::pair(3, 1));
  CHECK(KernelFactsOf(grade)->uses_tensor_cores);
}

TEST_CASE("shared memory shows by its bytes or by barriers, atomics count where no warp adds up first") {
  v1::Grade grade = OnGpu();
  AddKernel(&grade)->set_num_atomics(2);
  CHECK(KernelFactsOf(grade)->num_lone_atomics == 2);
  CHECK_FALSE(KernelFactsOf(grade)->shares_memory);
  v1::KernelBinary* const warps = AddKernel(&grade);
  warps->set_num_atomics(5);
  warps->set_num_shuffles(10);
  CHECK(KernelFactsOf(grade)->num_lone_atomics == 2);
  CHECK(KernelFactsOf(grade)->shuffles);
  warps->set_num_barriers(1);
  CHECK(KernelFactsOf(grade)->shares_memory);
  warps->set_num_barriers(0);
  warps->set_static_shared_bytes(128);
  CHECK(KernelFactsOf(grade)->shares_memory);
}

TEST_CASE("a share of an unknown ceiling is none") {
  v1::Profile profile;
  profile.set_gigabytes_per_second(412);
  CHECK(CeilingShare(profile) == 0);
  profile.set_gigabytes_per_second_ceiling(824);
  CHECK(CeilingShare(profile) == 0.5);
}

}  // namespace
}  // namespace warpsmith
