#include "reward_service/scoring/gpu_feedback.h"

#include <string>

#include "absl/strings/str_format.h"
#include "proto/advice_words.h"
#include "reward_service/scoring/feedback.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// A program without a fault that is seen: one launch of one kernel with wide loads, halfway to the ceiling.
struct Program {
  double speedup = 2.0;
  bool distinguishable = true;
  double ceiling_share = 0.5;
  const char* bound = "memory";
  SourceFacts source = {.valid = true, .num_launches = 1};
  KernelFacts kernels = {.num_kernels = 1, .load_bits_max = 128, .num_wide_kernels = 1, .registers = 32};
};

v1::Feedback Find(const Program& program) {
  v1::Grade grade;
  grade.mutable_timing()->set_speedup(program.speedup);
  grade.mutable_timing()->set_distinguishable(program.distinguishable);
  grade.mutable_profile()->set_gigabytes_per_second(3350 * program.ceiling_share);
  grade.mutable_profile()->set_gigabytes_per_second_ceiling(3350);
  grade.mutable_profile()->set_bound(program.bound);
  return SpeedFeedback(grade, program.source, /*num_lane_cores=*/1, program.kernels);
}

void CheckFinding(const Program& program, const std::string& finding, const std::string& numbers,
                  v1::Advice advice) {
  const v1::Feedback found = Find(program);
  CHECK(found.finding() == finding);
  CHECK(found.evidence() == absl::StrFormat("speedup %.2f%s%s", program.speedup,
                                            program.distinguishable ? "" : " within noise", numbers));
  CHECK(std::string(AdviceWords(found.advice())) == AdviceWords(advice));
}

// The same program at both ends: `fault` speaks where it is slow, and nowhere else.
void CheckSpeaksOf(Program program, v1::Advice advice) {
  INFO(AdviceWords(advice));
  CHECK(Find(program).advice() == advice);
  program.ceiling_share = 0.9;
  CHECK(Find(program).advice() == v1::ADVICE_KEEP);
}

TEST_CASE("a program that shows no fault is kept where it is faster, and told nothing else") {
  CheckFinding({}, "nothing to gain found", ", 1675 of 3350 GB/s, 1 launch", v1::ADVICE_KEEP);
  CheckFinding({.ceiling_share = 0.9}, "at the memory ceiling", ", 3015 of 3350 GB/s, 1 launch",
               v1::ADVICE_KEEP);
  CheckFinding({.speedup = 1.01, .distinguishable = false, .ceiling_share = 0.9}, "at the memory ceiling",
               ", 3015 of 3350 GB/s, 1 launch", v1::ADVICE_KEEP);
  CHECK(Find({.speedup = 0.5}).advice() == v1::ADVICE_UNSPECIFIED);
  CHECK(Find({.speedup = 0.5}).finding() == "slower than the reference");
  CHECK(Find({.speedup = 1.0, .distinguishable = false}).finding() == "no faster than the reference");
}

TEST_CASE("launches of one block, or of one thread a block, leave most of a GPU idle") {
  Program program{.ceiling_share = 0.01};
  program.source.num_one_block_launches = 1;
  CheckFinding(program, "few threads", ", 34 of 3350 GB/s, 1 launch, 1 block", v1::ADVICE_RAISE_OCCUPANCY);
  CheckSpeaksOf(program, v1::ADVICE_RAISE_OCCUPANCY);
  program.source.num_launches = 2;  // one of two: the last step of a sum
  CHECK(Find(program).advice() == v1::ADVICE_FUSE_KERNELS);
  program.source = {.valid = true, .num_launches = 1, .num_one_thread_launches = 1};
  CheckFinding(program, "few threads", ", 34 of 3350 GB/s, 1 launch, 1 thread a block",
               v1::ADVICE_RAISE_OCCUPANCY);
}

TEST_CASE("threads that read apart are told so below a quarter of the ceiling") {
  Program program{.ceiling_share = 0.24};
  program.source.strided_threads = true;
  CheckFinding(program, "strided threads", ", 804 of 3350 GB/s, 1 launch", v1::ADVICE_COALESCE);
  program.ceiling_share = 0.26;
  CHECK(Find(program).advice() == v1::ADVICE_KEEP);
}

TEST_CASE("what the host does needlessly is told with its number, unless the program is good all the same") {
  Program program;
  program.source.num_gpu_allocations = 2;
  CheckFinding(program, "memory is allocated", ", 1675 of 3350 GB/s, 1 launch, 2 allocations",
               v1::ADVICE_AVOID_TEMPORARY);
  CheckSpeaksOf(program, v1::ADVICE_AVOID_TEMPORARY);
  program.source = {.valid = true, .num_launches = 1, .num_synchronisations = 1};
  CheckFinding(program, "the host waits", ", 1675 of 3350 GB/s, 1 launch, 1 synchronisation",
               v1::ADVICE_AVOID_SYNCHRONISATION);
  CheckSpeaksOf(program, v1::ADVICE_AVOID_SYNCHRONISATION);
  program.source = {.valid = true, .num_launches = 3, .num_looped_launches = 1};
  CheckFinding(program, "launches in a loop", ", 1675 of 3350 GB/s, 3 launches, 1 in loops",
               v1::ADVICE_FEWER_LAUNCHES);
  CheckSpeaksOf(program, v1::ADVICE_FEWER_LAUNCHES);
  program.source = {.valid = true, .num_launches = 3};
  CheckFinding(program, "several kernels", ", 1675 of 3350 GB/s, 3 launches", v1::ADVICE_FUSE_KERNELS);
  CheckSpeaksOf(program, v1::ADVICE_FUSE_KERNELS);
  program.speedup = 0.8;  // near the ceiling with more than it need move
  program.ceiling_share = 0.9;
  CHECK(Find(program).advice() == v1::ADVICE_FUSE_KERNELS);
}

TEST_CASE("spills are told with the stack and its accesses") {
  Program program;
  program.kernels.stack_bytes = 48;
  program.kernels.num_local_accesses = 12;
  CheckFinding(program, "registers in memory",
               ", 1675 of 3350 GB/s, 1 launch, 48 B of stack a thread, 12 local accesses",
               v1::ADVICE_AVOID_SPILLS);
  CheckSpeaksOf(program, v1::ADVICE_AVOID_SPILLS);
}

TEST_CASE(
    "a loop over global memory wants shared memory where a kernel has none and is far from the ceiling") {
  Program program{.ceiling_share = 0.1};
  program.source.loop_depth_max = 1;
  CheckFinding(program, "memory is read again", ", 335 of 3350 GB/s, 1 launch, 0 B of shared memory",
               v1::ADVICE_USE_SHARED_MEMORY);
  Program other = program;
  other.ceiling_share = 0.26;
  CHECK(Find(other).advice() == v1::ADVICE_KEEP);
  other = program;
  other.kernels.shares_memory = true;
  CHECK(Find(other).advice() == v1::ADVICE_KEEP);
  other = program;
  other.kernels.shuffles = true;
  CHECK(Find(other).advice() == v1::ADVICE_KEEP);
  other = program;
  other.source.loop_depth_max = 0;
  CHECK(Find(other).advice() == v1::ADVICE_KEEP);
}

TEST_CASE("atomics without shuffles are told their number") {
  Program program;
  program.kernels.num_lone_atomics = 4;
  CheckFinding(program, "atomics", ", 1675 of 3350 GB/s, 1 launch, 4 atomics, 0 shuffles",
               v1::ADVICE_REDUCE_BY_WARP);
  CheckSpeaksOf(program, v1::ADVICE_REDUCE_BY_WARP);
}

TEST_CASE("narrow loads are told their width where no kernel has wide ones") {
  Program program{.ceiling_share = 412.0 / 3350};
  program.kernels = {.num_kernels = 1, .load_bits_max = 32, .num_narrow_kernels = 1};
  CheckFinding(program, "narrow loads", ", 412 of 3350 GB/s, 1 launch, 32-bit loads",
               v1::ADVICE_VECTORISE_LOADS);
  CheckSpeaksOf(program, v1::ADVICE_VECTORISE_LOADS);
  program.kernels.num_wide_kernels = 1;
  CHECK(Find(program).advice() == v1::ADVICE_KEEP);
}

TEST_CASE("many registers are told of what is slow and has no tensor cores") {
  Program program{.speedup = 0.7};
  program.kernels.registers = 168;
  CheckFinding(program, "many registers", ", 1675 of 3350 GB/s, 1 launch, 168 registers a thread",
               v1::ADVICE_RAISE_OCCUPANCY);
  program.kernels.registers = 128;
  CHECK(Find(program).advice() == v1::ADVICE_UNSPECIFIED);
  program.kernels.registers = 168;
  program.kernels.uses_tensor_cores = true;
  CHECK(Find(program).advice() == v1::ADVICE_UNSPECIFIED);
  program.kernels.uses_tensor_cores = false;
  program.speedup = 2;
  CHECK(Find(program).advice() == v1::ADVICE_KEEP);
}

TEST_CASE("of a call that is too short only what the host does is spoken of") {
  Program program{.ceiling_share = 0.01, .bound = "latency"};
  program.source.strided_threads = true;
  program.source.num_one_block_launches = 1;
  program.source.loop_depth_max = 2;
  program.kernels = {.num_kernels = 1,
                     .stack_bytes = 480,
                     .num_local_accesses = 60,
                     .load_bits_max = 32,
                     .num_narrow_kernels = 1,
                     .num_lone_atomics = 3};
  CHECK(Find(program).advice() == v1::ADVICE_KEEP);
  program.speedup = 0.5;
  program.kernels.registers = 255;
  CHECK(Find(program).advice() == v1::ADVICE_UNSPECIFIED);
  program.source.num_launches = 2;
  CHECK(Find(program).advice() == v1::ADVICE_FUSE_KERNELS);
}

TEST_CASE("where neither text nor machine code is known, the finding is unknown") {
  Program program;
  program.source = {};
  program.kernels = {};
  CheckFinding(program, "unknown", ", 1675 of 3350 GB/s, machine code unknown", v1::ADVICE_UNSPECIFIED);
  program.ceiling_share = 0.9;
  CHECK(Find(program).advice() == v1::ADVICE_KEEP);
}

TEST_CASE("the same grade is told a GPU's words on a GPU, and a CPU's on a CPU") {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_CORRECT);
  grade.mutable_timing()->set_speedup(1.5);
  grade.mutable_timing()->set_distinguishable(true);
  grade.mutable_profile()->set_num_samples(100);
  grade.mutable_profile()->set_own_code_share(1);
  v1::KernelBinary* const kernel = grade.mutable_compile()->add_kernels();
  kernel->set_num_instructions(10);
  kernel->set_load_bits(32);
  const SourceFacts source{.valid = true, .num_passes = 1, .num_launches = 1};
  CHECK(ComputeFeedback(grade, source, {}).advice() == v1::ADVICE_VECTORISE);
  grade.mutable_environment()->mutable_gpu()->set_name("H100");
  const v1::Feedback on_gpu = ComputeFeedback(grade, source, {});
  CHECK(on_gpu.advice() == v1::ADVICE_VECTORISE_LOADS);
  CHECK(on_gpu.evidence() == "speedup 1.50, 1 launch, 32-bit loads");
  CHECK(SpeedupIn(on_gpu) == 1.5);
  // A part that libraries could do comes first, as on a CPU.
  grade.mutable_credit()->set_library_share(0.4);
  CHECK(ComputeFeedback(grade, source, {}).advice() == v1::ADVICE_COMPUTE_EVERYTHING);
}

TEST_CASE("the two kernels that took the longest are told behind all else, and no advice depends on them") {
  v1::Grade grade;
  grade.mutable_timing()->set_speedup(2);
  grade.mutable_timing()->set_distinguishable(true);
  const auto add = [&grade](const std::string& name, double us, int num_launches) {
    v1::KernelRun& kernel = *grade.mutable_profile()->add_kernels();
    kernel.set_name(name);
    kernel.set_us(us);
    kernel.set_num_launches(num_launches);
    kernel.set_registers(40);
    for (const int extent : {4096, 1, 1}) kernel.add_grid(extent);
  };
  const SourceFacts source{.valid = true, .num_launches = 1};
  const KernelFacts kernels{.num_kernels = 1, .load_bits_max = 128, .num_wide_kernels = 1};
  const v1::Feedback without = SpeedFeedback(grade, source, 1, kernels);
  add("softmax_rows", 131.4, 1);
  CHECK(SpeedFeedback(grade, source, 1, kernels).evidence() ==
        "speedup 2.00, 1 launch; in its own words softmax_rows 131 us, grid 4096x1x1, 40 registers");
  add("two\nlines" + std::string(200, 'k'), 2.04, 3);
  add("third", 1, 1);
  const v1::Feedback found = SpeedFeedback(grade, source, 1, kernels);
  CHECK(found.evidence() ==
        "speedup 2.00, 1 launch; in its own words softmax_rows 131 us, grid 4096x1x1, 40 registers; "
        "two\\nlines" +
            std::string(39, 'k') + "... 2.0 us in 3 launches, grid 4096x1x1, 40 registers");
  CHECK(found.advice() == without.advice());
  CHECK(found.finding() == without.finding());
}

}  // namespace
}  // namespace warpsmith
