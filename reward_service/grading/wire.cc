#include "reward_service/grading/wire.h"

#include "core/base/log.h"

namespace warpsmith {
namespace {

constexpr size_t kReasonBytesMax = 512;

v1::Correctness ToProto(const CorrectnessNumbers& numbers) {
  v1::Correctness correctness;
  correctness.set_num_draws(numbers.num_draws);
  correctness.set_num_elements(numbers.num_elements);
  correctness.set_num_wrong(numbers.num_wrong);
  correctness.set_max_absolute_error(numbers.max_absolute_error);
  correctness.set_max_relative_error(numbers.max_relative_error);
  correctness.set_absolute_tolerance(numbers.absolute_tolerance);
  correctness.set_relative_tolerance(numbers.relative_tolerance);
  correctness.set_first_difference(Escape(numbers.first_difference, kReasonBytesMax));
  return correctness;
}

v1::TimingSide ToProto(const SideTiming& numbers) {
  v1::TimingSide side;
  side.set_median_us(numbers.median_us);
  side.set_mean_us(numbers.mean_us);
  side.set_standard_deviation_us(numbers.standard_deviation_us);
  side.set_num_calls(numbers.num_calls);
  side.set_num_instances(numbers.num_instances);
  return side;
}

v1::Timing ToProto(const TimingNumbers& numbers) {
  v1::Timing timing;
  *timing.mutable_reference() = ToProto(numbers.reference);
  *timing.mutable_candidate() = ToProto(numbers.candidate);
  timing.set_speedup(numbers.speedup);
  timing.set_speedup_low(numbers.speedup_low);
  timing.set_speedup_high(numbers.speedup_high);
  timing.set_distinguishable(numbers.distinguishable);
  timing.set_empty_call_us(numbers.empty_call_us);
  timing.set_quality(numbers.quality);
  timing.set_parameters_fixed(numbers.parameters_fixed);
  timing.set_libraries_withheld(numbers.libraries_withheld);
  return timing;
}

v1::Profile ToProto(const ProfileNumbers& numbers) {
  v1::Profile profile;
  profile.set_num_samples(numbers.num_samples);
  profile.set_own_code_share(numbers.own_code_share);
  profile.set_torch_share(numbers.torch_share);
  profile.set_blas_share(numbers.blas_share);
  profile.set_libc_share(numbers.libc_share);
  profile.set_kernel_share(numbers.kernel_share);
  profile.set_num_threads(numbers.num_threads);
  profile.set_vector_bits(numbers.vector_bits);
  profile.set_gigabytes_per_second(numbers.gigabytes_per_second);
  profile.set_gigabytes_per_second_ceiling(numbers.gigabytes_per_second_ceiling);
  profile.set_bound(numbers.bound);
  return profile;
}

}  // namespace

v1::Verdict ToVerdict(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCorrect:
      return v1::VERDICT_CORRECT;
    case Outcome::kIncorrect:
      return v1::VERDICT_INCORRECT;
    case Outcome::kWrongShape:
      return v1::VERDICT_WRONG_SHAPE;
    case Outcome::kWrongDtype:
      return v1::VERDICT_WRONG_DTYPE;
    case Outcome::kNonFinite:
      return v1::VERDICT_NON_FINITE;
    case Outcome::kRuntimeError:
      return v1::VERDICT_RUNTIME_ERROR;
    case Outcome::kTimeout:
      return v1::VERDICT_TIMEOUT;
    case Outcome::kHack:
      return v1::VERDICT_HACK;
    case Outcome::kInvalidTask:
      return v1::VERDICT_INVALID_TASK;
  }
  return v1::VERDICT_UNSCORABLE;
}

v1::Compile ToProto(const CompiledProgram& program, const std::string& compiler) {
  v1::Compile compile;
  compile.set_attempted(true);
  compile.set_succeeded(program.succeeded());
  compile.set_diagnostics(program.diagnostics);
  compile.set_compiler(compiler);
  compile.set_cached(program.cached);
  compile.set_headers(program.headers);
  return compile;
}

void FillFromJudgement(const Judgement& judgement, Measurement* measurement) {
  v1::Grade& grade = measurement->grade;
  grade.set_verdict(ToVerdict(judgement.outcome));
  grade.set_verdict_reason(Escape(judgement.reason, kReasonBytesMax));
  grade.set_hack_family(judgement.hack_family);
  *grade.mutable_correctness() = ToProto(judgement.correctness);
  if (judgement.timing.has_value()) *grade.mutable_timing() = ToProto(*judgement.timing);
  if (judgement.profile.has_value()) *grade.mutable_profile() = ToProto(*judgement.profile);
  v1::Cost* cost = grade.mutable_cost();
  cost->set_lane_wait_seconds(cost->lane_wait_seconds() + judgement.seconds.lane_wait);
  cost->set_oracle_seconds(judgement.seconds.oracle);
  cost->set_verify_seconds(judgement.seconds.verify);
  cost->set_time_seconds(judgement.seconds.time);
  cost->set_profile_seconds(judgement.seconds.profile);
  measurement->defects.out_of_bounds = judgement.out_of_bounds || judgement.guard_touched;
  measurement->defects.wrong_at_scale_only = judgement.wrong_at_scale_only;
  measurement->defects.input_mutated = judgement.input_mutated;
}

}  // namespace warpsmith
