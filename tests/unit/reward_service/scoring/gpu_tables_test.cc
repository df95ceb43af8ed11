#include "reward_service/scoring/gpu_tables.h"

#include "reward_service/scoring/tables.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr KernelFacts kWide = {.num_kernels = 1, .load_bits_max = 128, .num_wide_kernels = 1};
constexpr KernelFacts kNarrow = {.num_kernels = 1, .load_bits_max = 32, .num_narrow_kernels = 1};

KernelFacts Spilling(KernelFacts facts) {
  facts.stack_bytes = 96;
  facts.num_local_accesses = 30;
  return facts;
}

int Engineering(const KernelFacts& kernels, double speedup = 2, double ceiling_share = 0.1,
                const char* bound = "compute") {
  v1::Timing timing;
  timing.set_speedup_low(0.9 * speedup);
  timing.set_speedup_high(1.1 * speedup);
  v1::Profile profile;
  profile.set_gigabytes_per_second(3350 * ceiling_share);
  profile.set_gigabytes_per_second_ceiling(3350);
  profile.set_bound(bound);
  return EngineeringOnGpu(timing, {}, profile, kernels).score;
}

TEST_CASE("engineering follows spills, the memory ceiling and speed") {
  CHECK(Engineering(kNarrow) == 4);
  CHECK(Engineering(kNarrow, 0.9) == 3);
  CHECK(Engineering(kNarrow, 0.4) == 2);
  CHECK(Engineering(Spilling(kWide)) == 2);
  CHECK(Engineering(Spilling(kNarrow)) == 2);
  CHECK(Engineering(Spilling(kNarrow), 0.4) == 1);
  CHECK(Engineering(kNarrow, 2, 0.51) == 5);
  CHECK(Engineering(kNarrow, 0.9, 0.51) == 4);
  CHECK(Engineering(kNarrow, 0.9, 0.49) == 3);
  CHECK(Engineering({}) == 3);
  CHECK(Engineering({}, 2, 0.9) == 5);
}

TEST_CASE("the bandwidth of a call that is too short counts for nothing") {
  CHECK(Engineering(kNarrow, 0.9, 0.9, "latency") == 3);
}

TEST_CASE("instructions that may never run do not lift a program") {
  for (const double speedup : {0.4, 0.9, 2.0})
    CHECK(Engineering(kWide, speedup) == Engineering(kNarrow, speedup));
}

TEST_CASE("the condition has the numbers that chose the row") {
  v1::Profile profile;
  profile.set_gigabytes_per_second(335);
  profile.set_gigabytes_per_second_ceiling(3350);
  CHECK(EngineeringOnGpu({}, {}, profile, Spilling(kNarrow)).condition ==
        "10 % of the memory ceiling, 30 local accesses");
}

const AdviceOutcome kFaster{true, "speedup at least 1.80, before 1.20"};
const AdviceOutcome kNoFaster{false, "speedup at least 1.20, before 1.20"};

TEST_CASE("what machine code shows is followed where it shows it, and the program is faster") {
  KernelFacts shared = kNarrow, atomics = kNarrow;
  shared.shares_memory = true;
  atomics.num_lone_atomics = 3;
  const struct {
    v1::Advice advice;
    KernelFacts before, after;
  } cases[] = {{v1::ADVICE_VECTORISE_LOADS, kNarrow, kWide},
               {v1::ADVICE_USE_SHARED_MEMORY, kNarrow, shared},
               {v1::ADVICE_REDUCE_BY_WARP, atomics, kNarrow}};
  for (const auto& [advice, before, after] : cases) {
    INFO(v1::Advice_Name(advice));
    CHECK(FollowedOnGpu(advice, after, kFaster).done);
    CHECK_FALSE(FollowedOnGpu(advice, after, kNoFaster).done);
    CHECK_FALSE(FollowedOnGpu(advice, before, kFaster).done);
  }
  CHECK(FollowedOnGpu(v1::ADVICE_VECTORISE_LOADS, kWide, kFaster).condition ==
        "128-bit loads, speedup at least 1.80, before 1.20");
}

TEST_CASE("spills are avoided where there are none any more, whatever the time") {
  CHECK(FollowedOnGpu(v1::ADVICE_AVOID_SPILLS, kNarrow, kNoFaster).done);
  CHECK_FALSE(FollowedOnGpu(v1::ADVICE_AVOID_SPILLS, Spilling(kNarrow), kFaster).done);
  CHECK_FALSE(FollowedOnGpu(v1::ADVICE_AVOID_SPILLS, {}, kFaster).done);  // nothing is known
}

TEST_CASE("what only the text shows is followed where the program is faster") {
  for (const v1::Advice advice : {v1::ADVICE_FUSE_KERNELS, v1::ADVICE_COALESCE, v1::ADVICE_RAISE_OCCUPANCY,
                                  v1::ADVICE_FEWER_LAUNCHES, v1::ADVICE_AVOID_SYNCHRONISATION,
                                  v1::ADVICE_AVOID_TEMPORARY, v1::ADVICE_KEEP, v1::ADVICE_VECTORISE}) {
    INFO(v1::Advice_Name(advice));
    CHECK(FollowedOnGpu(advice, kNarrow, kFaster).done);
    CHECK_FALSE(FollowedOnGpu(advice, kNarrow, kNoFaster).done);
  }
}

RubricInputs OnGpu() {
  RubricInputs inputs;
  inputs.timing.set_speedup_low(1.8);
  inputs.timing.set_speedup_high(2.2);
  inputs.profile.set_gigabytes_per_second(2000);
  inputs.profile.set_gigabytes_per_second_ceiling(3350);
  inputs.kernels = kWide;
  return inputs;
}

TEST_CASE("a good program on a GPU has as much as one on a CPU, without a sample") {
  const v1::Rubric rubric = ComputeRubric(OnGpu());
  CHECK(rubric.total() == 20);
  CHECK(rubric.source() == kRubricTables);
  CHECK(rubric.engineering().condition().find("vectors") == std::string::npos);
  RubricInputs poor = OnGpu();
  poor.profile.clear_gigabytes_per_second();
  poor.kernels = Spilling(kNarrow);
  CHECK(ComputeRubric(poor).engineering().score() == 2);
}

TEST_CASE("where libraries could do all of the work on a GPU, nothing shows that it is the program's own") {
  RubricInputs inputs = OnGpu();
  inputs.credit.set_library_share(1);
  const v1::Rubric rubric = ComputeRubric(inputs);
  CHECK(rubric.anti_hacking().score() == 1);
  CHECK(rubric.engineering().score() == 5);
  inputs.profile.clear_gigabytes_per_second();
  CHECK(ComputeRubric(inputs).engineering().score() == 3);
  CHECK(rubric.operator_coverage().score() == 1);
  CHECK(rubric.skill_compliance().score() == 2);
}

TEST_CASE("compliance on a GPU is 5 where the advice was followed, 3 where it is only faster, else 1") {
  RubricInputs inputs = OnGpu();
  inputs.skill = v1::SKILL_OPTIMISE;
  inputs.asked.set_advice(v1::ADVICE_VECTORISE_LOADS);
  inputs.asked.set_evidence("speedup 1.20, 412 of 3350 GB/s, 1 launch, 32-bit loads");
  CHECK(ComputeRubric(inputs).skill_compliance().score() == 5);
  inputs.kernels = kNarrow;
  CHECK(ComputeRubric(inputs).skill_compliance().score() == 3);
  inputs.timing.set_speedup_low(1.25);
  CHECK(ComputeRubric(inputs).skill_compliance().score() == 1);
  inputs.asked.set_advice(v1::ADVICE_FIX_BOUNDS);
  CHECK(ComputeRubric(inputs).skill_compliance().score() == 5);
}

TEST_CASE("a GPU's advice asked of a program on a CPU is followed by time alone") {
  RubricInputs inputs = OnGpu();
  inputs.kernels.reset();
  inputs.skill = v1::SKILL_OPTIMISE;
  inputs.asked.set_advice(v1::ADVICE_AVOID_SPILLS);
  inputs.asked.set_evidence("speedup 1.20");
  CHECK(ComputeRubric(inputs).skill_compliance().score() == 5);
  inputs.timing.set_speedup_low(1.25);
  CHECK(ComputeRubric(inputs).skill_compliance().score() == 1);
}

}  // namespace
}  // namespace warpsmith
