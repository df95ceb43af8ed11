#include "cli/grade_text.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Catch::Contains;

v1::Grade CorrectGrade() {
  v1::Grade grade;
  grade.set_task_id("relu");
  grade.set_verdict(v1::VERDICT_CORRECT);
  grade.mutable_compile()->set_attempted(true);
  grade.mutable_compile()->set_succeeded(true);
  grade.mutable_compile()->set_compiler("g++ 12.2.0");
  grade.mutable_timing()->mutable_candidate()->set_num_calls(24);
  grade.mutable_timing()->set_speedup(2.5);
  grade.mutable_timing()->set_speedup_low(2.25);
  grade.mutable_timing()->set_speedup_high(2.75);
  grade.mutable_timing()->set_distinguishable(true);
  grade.mutable_reward()->set_value(1.5);
  grade.mutable_reward()->set_formula("warpsmith-v1");
  v1::RewardTerm* const term = grade.mutable_reward()->add_terms();
  term->set_name("credited_speedup");
  term->set_value(2.5);
  return grade;
}

TEST_CASE("A correct candidate's verdict, speed-up and reward are in the table") {
  const std::string text = GradeText(CorrectGrade());
  CHECK_THAT(text, Contains("verdict      CORRECT\n"));
  CHECK_THAT(text, Contains("compile      succeeded, g++ 12.2.0\n"));
  CHECK_THAT(text, Contains("speed-up     2.500 [2.250, 2.750]\n"));
  CHECK_THAT(text, Contains("reward       1.5000, warpsmith-v1\n"));
  CHECK_THAT(text, Contains("credited_speedup 2.5"));
}

TEST_CASE("The credit has a line with its reason, and its sum where libraries could do a part") {
  v1::Grade grade = CorrectGrade();
  CHECK_THAT(GradeText(grade), !Contains("\ncredit "));
  v1::Credit* const credit = grade.mutable_credit();
  credit->set_speedup(2.5);
  credit->set_own(2.5);
  credit->set_condition("no library could do the work");
  CHECK_THAT(GradeText(grade),
             Contains("[2.250, 2.750]\ncredit       2.500: no library could do the work\nreward"));
  credit->set_speedup(1.25);
  credit->set_library_share(0.6);
  credit->set_saved(0.417);
  CHECK_THAT(GradeText(grade),
             Contains("credit       1.250: no library could do the work\n             "
                      "0.40 x 2.500 of own speed + 0.60 x 0.417 of the reference's time saved\n"));
}

TEST_CASE("The family of a HACK stands beside its verdict") {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_HACK);
  grade.set_hack_family("input-mutation");
  grade.set_verdict_reason("it wrote to an input");
  CHECK_THAT(GradeText(grade),
             Contains("verdict      HACK, input-mutation\n             it wrote to an input\n"));
}

TEST_CASE("Each kernel has a line with what it has, and says where its instructions are unknown") {
  v1::Grade grade = CorrectGrade();
  v1::KernelBinary* const tiled = grade.mutable_compile()->add_kernels();
  tiled->set_name("tiled<8>");
  tiled->set_architecture("sm_90a");
  tiled->set_registers(32);
  tiled->set_static_shared_bytes(512);
  tiled->set_num_instructions(138);
  tiled->set_load_bits(32);
  tiled->set_num_barriers(6);
  v1::KernelBinary* const other = grade.mutable_compile()->add_kernels();
  other->set_name("new\nline");
  other->set_architecture("sm_75");
  other->set_registers(8);
  other->set_stack_bytes(64);
  const std::string text = GradeText(grade);
  CHECK_THAT(text, Contains("kernels      tiled<8> (sm_90a): 32 registers, 512 B of shared memory, "
                            "138 instructions, 32-bit loads, 6 barriers\n"));
  CHECK_THAT(
      text,
      Contains("\n             new\\nline (sm_75): 8 registers, 64 B of stack, instructions unknown\n"));
}

TEST_CASE("A GPU's grade says which GPU it was, and its bandwidth, without a line of samples") {
  v1::Grade grade = CorrectGrade();
  CHECK_THAT(GradeText(grade), !Contains("\ngpu "));
  v1::GpuEnvironment* const gpu = grade.mutable_environment()->mutable_gpu();
  gpu->set_name("NVIDIA H100\n80GB");
  gpu->set_architecture("sm_90a");
  gpu->set_driver_version("13.0");
  CHECK_THAT(GradeText(grade), Contains("\ngpu          NVIDIA H100\\n80GB (sm_90a), CUDA 13.0\nreward"));
  grade.mutable_profile()->set_gigabytes_per_second(412);
  grade.mutable_profile()->set_gigabytes_per_second_ceiling(3350);
  grade.mutable_profile()->set_bound("memory");
  CHECK_THAT(GradeText(grade), Contains("\n             412.0 of 3350.0 GB/s, memory-bound\n"));
  CHECK_THAT(GradeText(grade), !Contains("\nprofile "));
}

TEST_CASE("A GPU's clocks have a line where they are known") {
  v1::Grade grade = CorrectGrade();
  grade.mutable_environment()->mutable_gpu()->set_name("NVIDIA H100");
  CHECK_THAT(GradeText(grade), !Contains("MHz"));
  v1::GpuClocks* const clocks = grade.mutable_timing()->mutable_clocks();
  clocks->set_sm_mhz_min(1980);
  clocks->set_sm_mhz_max(1980);
  clocks->set_memory_mhz_min(2619);
  clocks->set_memory_mhz_max(2619);
  CHECK_THAT(GradeText(grade), Contains("\n             clock 1980 MHz, of memory 2619 MHz\n"));
  clocks->set_sm_mhz_min(1695);
  clocks->add_throttle_reasons("power cap");
  clocks->set_num_repeated_rounds(2);
  CHECK_THAT(GradeText(grade),
             Contains("\n             clock 1695 to 1980 MHz, of memory 2619 MHz, power cap; "
                      "rounds timed again: 2\n"));
}

TEST_CASE("Each kernel that a call launched has a line") {
  v1::Grade grade = CorrectGrade();
  CHECK_THAT(GradeText(grade), !Contains("\nlaunched "));
  grade.mutable_profile()->set_num_launches(3);
  v1::KernelRun* const kernel = grade.mutable_profile()->add_kernels();
  kernel->set_name("softmax\nrows");
  for (const int extent : {4096, 1, 1}) kernel->add_grid(extent);
  for (const int extent : {256, 2, 1}) kernel->add_block(extent);
  kernel->set_registers(40);
  kernel->set_shared_bytes(1024);
  kernel->set_num_launches(2);
  kernel->set_us(131.25);
  *grade.mutable_profile()->add_kernels() = v1::KernelRun();
  CHECK_THAT(GradeText(grade),
             Contains("\nlaunched     softmax\\nrows: 131.2 us in 2 of 3 launches, grid 4096x1x1, "
                      "block 256x2x1, 40 registers, 1024 B of shared memory\n             : 0.0 us"));
}

TEST_CASE("Parts that did not run have no line") {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_NO_CODE);
  const std::string text = GradeText(grade);
  CHECK_THAT(text, Contains("verdict      NO CODE\n"));
  for (const char* part : {"compile  ", "kernels", "time  ", "credit", "profile  ", "rubric", "feedback"})
    CHECK_THAT(text, !Contains(part));
}

TEST_CASE("A finding without advice is shown, and advice in words") {
  v1::Grade grade = CorrectGrade();
  grade.mutable_feedback()->set_finding("unknown");
  grade.mutable_feedback()->set_evidence("speedup 2.50, 15 samples");
  CHECK_THAT(GradeText(grade), Contains("feedback     unknown: speedup 2.50, 15 samples\n"));
  CHECK_THAT(GradeText(grade), !Contains("advice: "));
  grade.mutable_feedback()->set_advice(v1::ADVICE_COMPUTE_EVERYTHING);
  CHECK_THAT(GradeText(grade), Contains("advice: compute everything\n"));
}

TEST_CASE("Where an LLM judge gave an opinion, both scores and its reason are shown, escaped") {
  v1::Grade grade = CorrectGrade();
  grade.mutable_rubric()->set_total(11);
  grade.mutable_rubric()->set_source("llm over tables-v1");
  v1::RubricScore* const row = grade.mutable_rubric()->mutable_engineering();
  row->set_score(2);
  row->set_table_score(4);
  row->set_llm_score(2);
  row->set_llm_reason("three\npasses");
  const std::string text = GradeText(grade);
  CHECK_THAT(text, Contains("rubric       11 of 20, llm over tables-v1\n"));
  CHECK_THAT(text, Contains("table 4, LLM judge 2: three\\npasses\n"));
}

TEST_CASE("Advice reads as it does in a prompt") {
  v1::Grade grade = CorrectGrade();
  grade.mutable_feedback()->set_finding("memory bound");
  grade.mutable_feedback()->set_advice(v1::ADVICE_AVOID_TEMPORARY);
  CHECK_THAT(GradeText(grade), Contains("advice: avoid the temporary\n"));
}

TEST_CASE("A grade without reward says so instead of 0") {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_UNSCORABLE);
  CHECK_THAT(GradeText(grade), Contains("reward       none"));
}

TEST_CASE("A speed-up that may be chance is marked") {
  v1::Grade grade = CorrectGrade();
  grade.mutable_timing()->set_distinguishable(false);
  CHECK_THAT(GradeText(grade), Contains("not distinguishable from 1"));
}

TEST_CASE("What a candidate wrote cannot forge a line or colour the terminal") {
  v1::Grade grade = CorrectGrade();
  grade.set_verdict_reason("x\nreward       3.0000\x1b[31m");
  grade.mutable_compile()->set_diagnostics("error: \x1b[2J");
  const std::string text = GradeText(grade);
  CHECK_THAT(text, !Contains("\nreward       3.0000"));
  CHECK(text.find('\x1b') == std::string::npos);
}

}  // namespace
}  // namespace warpsmith
