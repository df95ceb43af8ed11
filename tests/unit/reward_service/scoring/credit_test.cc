#include "reward_service/scoring/credit.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

v1::Timing Timing(double speedup, bool distinguishable = true) {
  v1::Timing timing;
  timing.set_speedup(speedup);
  timing.set_distinguishable(distinguishable);
  return timing;
}

v1::Profile Profile(double torch, double blas, int num_samples = 100) {
  v1::Profile profile;
  profile.set_num_samples(num_samples);
  profile.set_torch_share(torch);
  profile.set_blas_share(blas);
  profile.set_own_code_share(1 - torch - blas);
  return profile;
}

TEST_CASE("own work earns the whole speed-up") {
  const Credit credit = ComputeCredit(Timing(2.5), Profile(0, 0), {});
  CHECK(credit.rule == CreditRule::kFull);
  CHECK(credit.speedup == 2.5);
}

TEST_CASE("a speed-up that cannot be told from 1 is exactly 1") {
  const Credit credit = ComputeCredit(Timing(1.02, false), Profile(0, 0), {});
  CHECK(credit.rule == CreditRule::kNotDistinguishable);
  CHECK(credit.speedup == 1.0);
}

TEST_CASE("half of the work in a library that the task does not allow earns nothing") {
  CHECK(ComputeCredit(Timing(2), Profile(0.5, 0), {}).rule == CreditRule::kDelegated);
  CHECK(ComputeCredit(Timing(2), Profile(0.2, 0.3), {}).speedup == 0.0);
  CHECK(ComputeCredit(Timing(2), Profile(0.49, 0), {}).rule == CreditRule::kFull);
}

TEST_CASE("less than a twentieth of own work is a hack") {
  CHECK(ComputeCredit(Timing(2), Profile(0.96, 0), {}).rule == CreditRule::kHack);
  CHECK(ComputeCredit(Timing(2), Profile(0.94, 0), {}).rule == CreditRule::kDelegated);
}

TEST_CASE("an allowed library may do all of the work") {
  v1::Task task;
  task.add_allowed_libraries("blas");
  CHECK(ComputeCredit(Timing(2), Profile(0, 0.98), task).rule == CreditRule::kFull);
  CHECK(ComputeCredit(Timing(2), Profile(0.98, 0), task).rule == CreditRule::kHack);
}

TEST_CASE("few samples decide nothing") {
  const Credit credit = ComputeCredit(Timing(2), Profile(1, 0, 19), {});
  CHECK(credit.rule == CreditRule::kFull);
  CHECK(credit.speedup == 2.0);
}

TEST_CASE("time that is nobody's is left out of the shares") {
  v1::Profile profile = Profile(0.3, 0);
  profile.set_own_code_share(0.2);
  CHECK(ComputeCredit(Timing(2), profile, {}).rule == CreditRule::kDelegated);
  profile.set_own_code_share(0.4);
  CHECK(ComputeCredit(Timing(2), profile, {}).rule == CreditRule::kFull);
}

TEST_CASE("burning time beside a library that does the whole work earns nothing") {
  CHECK(ComputeCredit(Timing(0.45), Profile(0.45, 0), {}).rule == CreditRule::kDelegated);
  CHECK(ComputeCredit(Timing(0.9), Profile(0.45, 0), {}).rule == CreditRule::kFull);
  CHECK(ComputeCredit(Timing(0.05), Profile(0.06, 0), {}).rule == CreditRule::kFull);
}

TEST_CASE("some calls that are left to libraries spoil all") {
  v1::Profile profile = Profile(0.2, 0);
  profile.set_delegated_call_share(0.25);
  CHECK(ComputeCredit(Timing(2), profile, {}).rule == CreditRule::kDelegated);
  profile.set_delegated_call_share(0.05);
  CHECK(ComputeCredit(Timing(2), profile, {}).rule == CreditRule::kFull);
}

TEST_CASE("of a small task, libraries may do little beside what the reference has them do") {
  v1::Profile profile = Profile(0.98, 0);
  profile.set_library_work(0.1);
  CHECK(ComputeCredit(Timing(2), profile, {}).rule == CreditRule::kFull);
  profile.set_library_work(0.9);
  CHECK(ComputeCredit(Timing(2), profile, {}).rule == CreditRule::kHack);
}

TEST_CASE("parameters that cannot be set earn no speed-up") {
  v1::Timing timing = Timing(2);
  timing.set_parameters_fixed(true);
  const Credit credit = ComputeCredit(timing, Profile(0, 0), {});
  CHECK(credit.rule == CreditRule::kFixedParameters);
  CHECK(credit.speedup == 0.0);
  // However short the calls are.
  CHECK(ComputeCredit(timing, {}, {}).speedup == 0.0);
}

TEST_CASE("calls that are slow when they are watched earn no speed-up for those that were timed") {
  v1::Profile profile = Profile(0, 0);
  profile.set_slow_call_share(0.5);
  CHECK(ComputeCredit(Timing(2), profile, {}).rule == CreditRule::kOtherCalls);
  CHECK(ComputeCredit(Timing(2), profile, {}).speedup == 0.0);
  profile.set_slow_call_share(0.4);
  CHECK(ComputeCredit(Timing(2), profile, {}).rule == CreditRule::kFull);
}

}  // namespace
}  // namespace warpsmith
